-- Adds to the totals of a job type. A stored total that is no number is left alone: figures never stop a job.
local function count(counters_key, counter, type, number)
  redis.pcall('HINCRBY', counters_key, counter .. ':' .. type, number)
end
