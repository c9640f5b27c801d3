-- Adds a record to the history of a schedule, and drops what is too old or too much.
local function keep_firing(key, record, at, kept, kept_ms)
  redis.call('ZADD', key, at, record)
  redis.call('ZREMRANGEBYSCORE', key, '-inf', '(' .. string.format('%d', at - kept_ms))
  redis.call('ZREMRANGEBYRANK', key, 0, -kept - 1)
end
