-- Leaves a new pulse of whoever keeps the definitions: by the last one it sees whether this is still the store that it knows.
-- Reply: 1 or 0 (the pulse that the caller knows is there or not), fired_until, how many definitions there are
local control = KEYS[1] -- hash: pulse, fired_until
local digests = KEYS[2] -- hash: name -> digest of the definition
local known_pulse = ARGV[1] -- the one that the caller left, '' = none
local pulse = ARGV[2] -- the new one, '' = leave none

local facts = redis.call('HMGET', control, 'pulse', 'fired_until')
local count = redis.call('HLEN', digests)
if pulse ~= '' then
  redis.call('HSET', control, 'pulse', pulse)
end
return { facts[1] == known_pulse and 1 or 0, facts[2] or '0', count }
