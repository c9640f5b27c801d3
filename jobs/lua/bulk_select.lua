-- Adds the jobs that a stretch of the list held to the selection of a bulk operation; the place in the list moves with
-- them, so none is added twice. Where the list ends the operation begins, or waits for its number to be confirmed.
-- Operation: selecting -> selecting | waiting | running | done
-- Reply: the state
-- Errors: LEASE_LOST
-- #include server_now
local clock = KEYS[1] -- string: high-water mark of server time
local due = KEYS[2] -- zset: operation -> when to go on with it
local facts_of = KEYS[3] -- prefix: one hash of facts per operation
local items_of = KEYS[4] -- prefix: one hash per operation, number of a part -> packed ids
local given_now = ARGV[1] -- ms, '' = the server's clock
local id = ARGV[2] -- of the operation
local token = ARGV[3] -- of the claim
local cursor = ARGV[4] -- where the next stretch begins, '' = this was the last
local looked = tonumber(ARGV[5]) -- jobs that were looked at
local found = tonumber(ARGV[6]) -- jobs in the parts
local items = 7 -- ARGV[7..]: packed ids of each part

local now = server_now(clock, given_now)
local facts = facts_of .. id
local held = redis.call('HMGET', facts, 'claim', 'state', 'parts', 'confirmed', 'begins_at', 'total')
if held[1] ~= token then
  return redis.error_reply('LEASE_LOST the claim on bulk operation ' .. id .. ' is over')
end
if held[2] ~= 'selecting' then
  return held[2]
end
local parts, total = tonumber(held[3] or 0), tonumber(held[6] or 0) + found
for i = items, #ARGV do
  redis.call('HSET', items_of .. id, parts, ARGV[i])
  parts = parts + 1
end
local state = 'selecting'
if cursor == '' then
  state = total == 0 and 'done' or tonumber(held[4]) >= total and 'running' or 'waiting'
end
redis.call('HINCRBY', facts, 'looked', looked)
redis.call('HSET', facts, 'state', state, 'cursor', cursor, 'parts', parts, 'total', total, 'claim', '')
if state == 'done' then
  redis.call('HSET', facts, 'ended_at', now)
end
if state == 'done' or state == 'waiting' then
  redis.call('ZREM', due, id)
else
  redis.call('ZADD', due, state == 'running' and math.max(now, tonumber(held[5])) or now, id)
end
return state
