-- A deadline was seen to, unless it was put off meanwhile.
-- Reply: 1, or 0 where it was
local deadlines = KEYS[1] -- zset: run and node -> when it is to be over, ms
local run = ARGV[1] -- run and node
local at = ARGV[2] -- ms

local score = redis.call('ZSCORE', deadlines, run)
if score and tonumber(score) == tonumber(at) then
  return redis.call('ZREM', deadlines, run)
end
return 0
