-- Removes all that is stored of these jobs, except their place in a line.
-- Needs: forget_logs.
local function forget_jobs(ids, keys)
  for _, hash in ipairs({ keys.bodies, keys.states, keys.attempts, keys.results, keys.progress }) do
    redis.call('HDEL', hash, unpack(ids))
  end
  redis.call('ZREM', keys.expiring, unpack(ids))
  forget_logs(ids, keys.logs, keys.log_of)
end
