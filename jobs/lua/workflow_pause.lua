-- Pauses a run, or lets it go on: while it is paused nothing that is released becomes a job.
-- Errors: RUN_NOT_FOUND, WRONG_STATE (it is over, or being cancelled)
-- Reply: 1, or 0 where it stood so before
local run = KEYS[1] -- hash: facts of the run
local pause = ARGV[1] -- JSON: by, at, reason; '' = it goes on

local facts = redis.call('HMGET', run, 'state', 'cancelled', 'paused')
if not facts[1] then
  return redis.error_reply('RUN_NOT_FOUND ' .. 'there is no such run')
elseif pause == '' then
  return redis.call('HDEL', run, 'paused')
elseif facts[1] ~= 'running' then
  return redis.error_reply('WRONG_STATE ' .. facts[1])
elseif facts[2] then
  return redis.error_reply('WRONG_STATE ' .. 'cancelled')
elseif facts[3] then
  return 0
end
redis.call('HSET', run, 'paused', pause)
return 1
