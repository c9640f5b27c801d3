-- All nodes are there: the run begins.
-- Errors: RUN_NOT_FOUND
-- Reply: the state of the run
-- #include agenda
local run = KEYS[1] -- hash: facts of the run
local agenda = KEYS[2] -- zset: what is to be looked at -> in which order

local state = redis.call('HGET', run, 'state')
if not state then
  return redis.error_reply('RUN_NOT_FOUND ' .. 'there is no such run')
end
if state == 'preparing' then
  redis.call('HSET', run, 'state', 'running')
  judge_later({ run = run, agenda = agenda }, '', 0)
  return 'running'
end
return state
