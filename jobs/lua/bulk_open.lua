-- Opens a bulk operation: what is to be done to which jobs, on whose word. Those that were opened long ago make room.
-- Reply: "ok", "exists" where this one was opened before, or "full" where twice as many as are kept are under way
-- #include server_now
local clock = KEYS[1] -- string: high-water mark of server time
local order = KEYS[2] -- zset: operation -> opened at
local due = KEYS[3] -- zset: operation -> when to go on with it
local facts_of = KEYS[4] -- prefix: one hash of facts per operation
local items_of = KEYS[5] -- prefix: one hash per operation, number of a part -> packed ids
local results_of = KEYS[6] -- prefix: one hash per operation, number of a part -> packed refusals
local given_now = ARGV[1] -- ms, '' = the server's clock
local id = ARGV[2] -- of the operation
local request = ARGV[3] -- JSON: action, filter and the rest that never changes
local confirmed = tonumber(ARGV[4]) -- so many jobs were agreed to; -1 = none yet
local begins = tonumber(ARGV[5]) -- ms after which it begins to act
local keep = tonumber(ARGV[6]) -- so many operations are kept
local found = tonumber(ARGV[7]) -- jobs in the parts
local items = 8 -- ARGV[8..]: packed ids of each part; none = they are looked for first

local now = server_now(clock, given_now)
local facts = facts_of .. id
if redis.call('EXISTS', facts) == 1 then
  return 'exists'
end
local old = {}
for _, opened in ipairs(redis.call('ZRANGE', order, 0, redis.call('ZCARD', order) - keep)) do
  if not redis.call('ZSCORE', due, opened) then
    old[#old + 1] = opened
  end
end
if redis.call('ZCARD', order) - #old >= 2 * keep then
  return 'full'
end
for _, opened in ipairs(old) do
  redis.call('UNLINK', facts_of .. opened, items_of .. opened, results_of .. opened)
  redis.call('ZREM', order, opened)
end
local parts = #ARGV - items + 1
for number = 1, parts do
  redis.call('HSET', items_of .. id, number - 1, ARGV[items + number - 1])
end
local state = parts == 0 and 'selecting' or confirmed >= found and 'running' or 'waiting'
redis.call('HSET', facts, 'request', request, 'state', state, 'confirmed', confirmed, 'opened_at', now)
redis.call('HSET', facts, 'begins_at', now + begins, 'parts', parts, 'total', found, 'looked', found)
redis.call('ZADD', order, now, id)
if state ~= 'waiting' then
  redis.call('ZADD', due, state == 'running' and now + begins or now, id)
end
return 'ok'
