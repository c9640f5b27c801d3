-- Adds to the pool's time series: one field per 10 s bucket and counter, kept for an hour by the pruner. A stored figure
-- that is no number is left alone: figures never stop a job.
local function measure(series_key, now, counter, number)
  redis.pcall('HINCRBY', series_key, math.floor(now / 10000) .. ':' .. counter, number)
end
