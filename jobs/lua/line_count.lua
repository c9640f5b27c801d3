-- Counts the ready jobs of a partition: in line, held back by a limit of their type, and set aside until somebody may run them.
-- Reads only.
-- Reply: how many
local ready = KEYS[1] -- zset: id -> place
local throttled = KEYS[2] -- zset: id -> place
local parked = KEYS[3] -- hash: type -> parked jobs

local count = redis.call('ZCARD', ready) + redis.call('ZCARD', throttled)
for _, number in ipairs(redis.call('HVALS', parked)) do
  count = count + (tonumber(number) or 0)
end
return count
