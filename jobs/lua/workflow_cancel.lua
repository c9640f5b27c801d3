-- Stops a run: what waits never starts, but for nodes that are marked so; ending what runs is the caller's. Told again it
-- changes nothing.
-- Errors: RUN_NOT_FOUND, WRONG_STATE (it is over)
-- Reply: "cancelled", or "before" where it was told before
-- #include agenda
local run = KEYS[1] -- hash: facts of the run
local agenda = KEYS[2] -- zset: what is to be looked at -> in which order
local reason = ARGV[1] -- JSON: by, at, reason

local facts = redis.call('HMGET', run, 'state', 'cancelled')
local state = facts[1]
if not state then
  return redis.error_reply('RUN_NOT_FOUND ' .. 'there is no such run')
elseif state ~= 'running' then
  return redis.error_reply('WRONG_STATE ' .. state)
elseif facts[2] then
  return 'before'
end
redis.call('HSET', run, 'cancelled', reason)
redis.call('HDEL', run, 'stopped')
if redis.call('HDEL', run, 'paused') == 1 then
  redis.call('HINCRBY', run, 'halts', 1)
end
sweep_later({ run = run, agenda = agenda }, 0)
judge_later({ run = run, agenda = agenda }, '', 0)
return 'cancelled'
