-- Pauses a worker host that is there, or lifts its pause. The pause is forgotten with the host.
-- Reply: 1, or 0 where there is no such host (to be paused it has to be alive); the pause that was there or ''
local workers = KEYS[1] -- hash: worker id -> packed facts
local alive = KEYS[2] -- zset: worker id -> counted as gone from then on
local pauses = KEYS[3] -- hash: host id -> pause
local id = ARGV[1] -- host id
local pause = ARGV[2] -- JSON of who, when, why, until; '' = lift it
local now = tonumber(ARGV[3]) -- ms

local until_ms = redis.call('ZSCORE', alive, id)
local before = redis.call('HGET', pauses, id) or ''
if redis.call('HEXISTS', workers, id) == 0 or (pause ~= '' and not (until_ms and tonumber(until_ms) > now)) then
  return { 0, before }
end
if pause == '' then
  redis.call('HDEL', pauses, id)
else
  redis.call('HSET', pauses, id, pause)
end
return { 1, before }
