-- Tells a partition what is paused: a lease asks here, in the same slot as the jobs. What runs goes on. An older version
-- than the last one is not taken: whoever is slow changes nothing.
-- Reply: '1' if it was news
-- #include wake_one
local control = KEYS[1] -- hash: pause_version, paused_until, paused_types
local wake = KEYS[2] -- list: wake token
local version = tonumber(ARGV[1]) -- of what is paused
local until_ms = ARGV[2] -- server ms until which nothing starts here, '' = not paused
local types = ARGV[3] -- MessagePack: type -> server ms until which none of it starts; '' = none

local known = redis.call('HMGET', control, 'pause_version', 'paused_until', 'paused_types')
if version <= (tonumber(known[1] or nil) or 0) then
  return ''
end
redis.call('HSET', control, 'pause_version', version, 'paused_until', until_ms, 'paused_types', types)
if until_ms == '' then
  wake_one(wake)
end
return '1'
