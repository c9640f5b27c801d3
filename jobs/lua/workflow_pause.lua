-- Pauses a run, or lets it go on: while it is paused nothing that is released becomes a job. Each change counts `halts` up: the
-- partitions where its jobs are must be told.
-- Errors: RUN_NOT_FOUND, WRONG_STATE (it is over, or being cancelled)
-- Reply: 1, or 0 where it stood so before
local run = KEYS[1] -- hash: facts of the run
local pause = ARGV[1] -- JSON: by, at, reason; '' = it goes on

local facts = redis.call('HMGET', run, 'state', 'cancelled', 'paused')
if not facts[1] then
  return redis.error_reply('RUN_NOT_FOUND ' .. 'there is no such run')
elseif pause == '' and not facts[3] then
  return 0
elseif pause ~= '' and facts[1] ~= 'running' then
  return redis.error_reply('WRONG_STATE ' .. facts[1])
elseif pause ~= '' and facts[2] then
  return redis.error_reply('WRONG_STATE ' .. 'cancelled')
elseif pause ~= '' and facts[3] then
  return 0
end
if pause == '' then
  redis.call('HDEL', run, 'paused')
else
  redis.call('HSET', run, 'paused', pause)
end
redis.call('HINCRBY', run, 'halts', 1)
return 1
