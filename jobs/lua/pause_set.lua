-- Pauses something or lifts its pause: the one place that says what is paused. Partitions are told after it.
-- Reply: version of what is paused now, the pause that was there or ''
-- #include tell
local pauses = KEYS[1] -- hash: version, everything, pool:<name>, type:<name>, disabled:<type> -> pause
local news = KEYS[2] -- stream: topics
local scope = ARGV[1] -- everything, pool:<name> or type:<name>
local pause = ARGV[2] -- JSON of who, when, why, until; '' = lift it
local only = ARGV[3] -- lift only this very pause; '' = any

local before = redis.call('HGET', pauses, scope) or ''
if before == pause or (only ~= '' and before ~= only) then
  return { tonumber(redis.call('HGET', pauses, 'version') or 0), before }
end
if pause == '' then
  redis.call('HDEL', pauses, scope)
else
  redis.call('HSET', pauses, scope, pause)
end
local version = redis.call('HINCRBY', pauses, 'version', 1)
tell(news, 'pauses')
return { version, before }
