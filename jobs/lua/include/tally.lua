-- Adds to the figures of the current 10 seconds: one hash for each of them, "<figure>:<type>" -> number. A stored figure
-- that is no number is left alone: figures never stop a job.
local tallied_at, window
local function tally(live, now, figure, type, number)
  if tallied_at ~= now then
    tallied_at, window = now, live .. math.floor(now / 10000) -- once: turning numbers into text is dear
  end
  redis.pcall('HINCRBY', window, figure .. ':' .. type, number)
end
