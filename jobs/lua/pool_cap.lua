-- Tells a partition how many of its jobs may run at once. An older version than the last one is not taken: whoever is slow
-- changes nothing.
-- Reply: how many run now, jobs that are ready, how many may run ('' = no cap)
-- #include wake_one
-- #include leased_count
local control = KEYS[1] -- hash: max_running, cap_version
local leased = KEYS[2] -- zset: id, or line break and token of a bundle -> lease deadline
local ready = KEYS[3] -- zset: id -> place
local wake = KEYS[4] -- list: wake token
local bundled = KEYS[5] -- hash: token -> jobs still in the bundle
local share = tonumber(ARGV[1]) -- '' = no cap
local version = tonumber(ARGV[2]) -- of the shares of the pool's partitions

local known = redis.call('HMGET', control, 'cap_version', 'max_running')
local current = tonumber(known[2] or nil)
if version > (tonumber(known[1] or nil) or 0) then
  redis.call('HSET', control, 'cap_version', version)
  if share then
    redis.call('HSET', control, 'max_running', share)
  else
    redis.call('HDEL', control, 'max_running')
  end
  if share ~= current then
    wake_one(wake)
  end
  current = share
end
return { leased_count(leased, bundled), redis.call('ZCARD', ready), current or '' }
