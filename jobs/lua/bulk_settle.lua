-- Writes down what became of one part of a bulk operation. After its trial part it waits for a word to go on.
-- Operation: running -> running | waiting | done, stopping -> cancelled
-- Reply: the state
-- Errors: LEASE_LOST
-- #include server_now
local clock = KEYS[1] -- string: high-water mark of server time
local due = KEYS[2] -- zset: operation -> when to go on with it
local facts_of = KEYS[3] -- prefix: one hash of facts per operation
local results_of = KEYS[4] -- prefix: one hash per operation, number of a part -> packed refusals
local given_now = ARGV[1] -- ms, '' = the server's clock
local id = ARGV[2] -- of the operation
local token = ARGV[3] -- of the claim
local done = tonumber(ARGV[4]) -- jobs it was done to
local refused = tonumber(ARGV[5]) -- jobs it was not done to
local unsure = tonumber(ARGV[6]) -- jobs of a part that was handed out twice of which it is not known
local results = ARGV[7] -- packed: id -> why not
local pause_ms = tonumber(ARGV[8]) -- until the next part
local trial = ARGV[9] -- '1' = wait after the first part

local now = server_now(clock, given_now)
local facts = facts_of .. id
local held = redis.call('HMGET', facts, 'claim', 'state', 'parts', 'next')
if held[1] ~= token then
  return redis.error_reply('LEASE_LOST the claim on bulk operation ' .. id .. ' is over')
end
local part = tonumber(held[4] or 0)
local state = held[2]
if state == 'stopping' then
  state = 'cancelled'
elseif part + 1 >= tonumber(held[3]) then
  state = 'done'
elseif trial == '1' and part == 0 then
  state = 'waiting'
end
if results ~= '' then
  redis.call('HSET', results_of .. id, part, results)
end
redis.call('HINCRBY', facts, 'done', done)
redis.call('HINCRBY', facts, 'refused', refused)
redis.call('HINCRBY', facts, 'unsure', unsure)
redis.call('HSET', facts, 'next', part + 1, 'state', state, 'claim', '')
if part == 0 then
  redis.call('HSET', facts, 'began_at', now)
end
if state == 'running' then
  redis.call('ZADD', due, now + pause_ms, id)
else
  redis.call('ZREM', due, id)
end
if state == 'cancelled' or state == 'done' then
  redis.call('HSET', facts, 'ended_at', now)
end
return state
