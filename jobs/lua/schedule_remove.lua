-- Forgets schedules and all that is known of them. Their jobs stay.
-- Reply: how many there were
local due = KEYS[1] -- zset: name -> when to look at it next (ms)
local states = KEYS[2] -- hash: name -> packed state
local definitions = KEYS[3] -- hash: name -> packed definition
local digests = KEYS[4] -- hash: name -> digest of the definition
local claims = KEYS[5] -- hash: name -> number, time of the first and token of the claim
local firings = KEYS[6] -- prefix: one zset of records per schedule, by time
local items = 1 -- ARGV[1..]: name

local removed = 0
for i = items, #ARGV do
  local name = ARGV[i]
  removed = removed + redis.call('HDEL', definitions, name)
  redis.call('HDEL', digests, name)
  redis.call('HDEL', states, name)
  redis.call('HDEL', claims, name)
  redis.call('ZREM', due, name)
  redis.call('DEL', firings .. name)
end
return removed
