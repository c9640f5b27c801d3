-- Stops new starts in this partition: a lease asks here first. What runs goes on.
local control = KEYS[1] -- hash: paused, paused_until
local paused = ARGV[1] -- JSON: by, at, reason, until
local until_ms = ARGV[2] -- server ms at which the pause ends by itself, '' = never

redis.call('HSET', control, 'paused', paused, 'paused_until', until_ms)
return 'ok'
