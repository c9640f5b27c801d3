-- Writes down that all jobs of a cancelled run have been asked to stop.
-- Reply: 1, or 0 where the run is not cancelled
local run = KEYS[1] -- hash: facts of the run

if redis.call('HEXISTS', run, 'cancelled') == 0 then
  return 0
end
redis.call('HSET', run, 'stopped', 1)
return 1
