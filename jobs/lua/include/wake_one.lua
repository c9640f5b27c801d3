-- Leaves one token for one waiting fetcher. Whoever takes jobs and leaves some wakes the next in turn.
local function wake_one(wake_key)
  if redis.call('LLEN', wake_key) == 0 then
    redis.call('RPUSH', wake_key, '1')
  end
end
