-- Removes all that is stored of these jobs, except their place in a line.
local function forget_jobs(ids, keys)
  for _, hash in ipairs({ keys.bodies, keys.states, keys.attempts, keys.results, keys.progress }) do
    redis.call('HDEL', hash, unpack(ids))
  end
  redis.call('ZREM', keys.expiring, unpack(ids))
end
