-- Lets a bulk operation act that waits for its number to be confirmed, or for a word after its trial.
-- Operation: waiting -> running
-- Reply: "ok", "count" where the number is another, or the state that does not allow it ('' = there is none)
-- #include server_now
local clock = KEYS[1] -- string: high-water mark of server time
local due = KEYS[2] -- zset: operation -> when to go on with it
local facts_of = KEYS[3] -- prefix: one hash of facts per operation
local given_now = ARGV[1] -- ms, '' = the server's clock
local id = ARGV[2] -- of the operation
local number = tonumber(ARGV[3]) -- so many jobs are agreed to

local now = server_now(clock, given_now)
local facts = facts_of .. id
local held = redis.call('HMGET', facts, 'state', 'total')
if held[1] ~= 'waiting' then
  return held[1] or ''
end
if number ~= tonumber(held[2]) then
  return 'count'
end
redis.call('HSET', facts, 'state', 'running', 'confirmed', number)
redis.call('ZADD', due, now, id)
return 'ok'
