-- Stops a bulk operation: at once, or when the part that a host has in hand is settled.
-- Operation: selecting | waiting | running -> cancelled | stopping; stopping -> cancelled where its host has died
-- Reply: the state that it is in then, or that does not allow it ('' = there is none)
-- #include server_now
local clock = KEYS[1] -- string: high-water mark of server time
local due = KEYS[2] -- zset: operation -> when to go on with it
local facts_of = KEYS[3] -- prefix: one hash of facts per operation
local given_now = ARGV[1] -- ms, '' = the server's clock
local id = ARGV[2] -- of the operation
local hold_ms = tonumber(ARGV[3]) -- how long a claim lasts

local now = server_now(clock, given_now)
local facts = facts_of .. id
local held = redis.call('HMGET', facts, 'state', 'claim', 'claim_until')
local state = held[1]
if not state or state == 'done' or state == 'cancelled' then
  return state or ''
end
local claimed = held[2] and held[2] ~= '' and tonumber(held[3]) > now and tonumber(held[3]) - now <= hold_ms
if claimed and (state == 'running' or state == 'stopping') then
  redis.call('HSET', facts, 'state', 'stopping')
  return 'stopping'
end
-- A host that died left its part undone, or did it and could not say so: taken again, it is settled and then over.
if held[2] and held[2] ~= '' and (state == 'running' or state == 'stopping') then
  redis.call('HSET', facts, 'state', 'stopping')
  redis.call('ZADD', due, now, id)
  return 'stopping'
end
redis.call('HSET', facts, 'state', 'cancelled', 'ended_at', now, 'claim', '')
redis.call('ZREM', due, id)
return 'cancelled'
