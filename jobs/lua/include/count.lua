-- Adds to the totals of a job type.
local function count(counters_key, counter, type, number)
  redis.call('HINCRBY', counters_key, counter .. ':' .. type, number)
end
