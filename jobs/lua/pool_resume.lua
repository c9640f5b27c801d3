-- Ends a pause and wakes a waiting fetcher.
-- #include wake_one
local control = KEYS[1] -- hash: paused, paused_until
local wake = KEYS[2] -- list: wake token

redis.call('HDEL', control, 'paused', 'paused_until')
wake_one(wake)
return 'ok'
