-- Writes down that all partitions where jobs of a run are know whether it is paused; of a run that is over they have forgotten.
-- Reply: 1, or 0 where it was paused, or went on, since
local run = KEYS[1] -- hash: facts of the run
local version = ARGV[1] -- what they were told

local facts = redis.call('HMGET', run, 'halts', 'state')
if facts[1] ~= version then
  return 0
end
if facts[2] == 'running' then
  redis.call('HSET', run, 'halts_told', version)
else
  redis.call('HDEL', run, 'halts', 'halts_told')
end
return 1
