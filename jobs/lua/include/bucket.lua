-- The bucket of a duration in ms: eight to each doubling, 0 for less than 1 ms. Whoever changes it changes jobs.core.histogram.
local EIGHTHS, LAST_BUCKET = 8 / math.log(2), 256
local bucket_memo = {}
local function bucket(milliseconds)
  local found = bucket_memo[milliseconds]
  if not found then
    if milliseconds < 1 then
      found = 0
    else
      found = math.min(LAST_BUCKET, 1 + math.floor(math.log(milliseconds) * EIGHTHS + 1e-9))
    end
    bucket_memo[milliseconds] = found
  end
  return found
end
