-- Takes a waiting job out of its line; returns its state and its score there, or nil where it is in none.
-- `parked_type` is the type of a job that may be parked.
local function leave_waiting(id, keys, parked_type)
  for _, line in ipairs({ 'ready', 'scheduled', 'retry_wait', 'blocked', 'throttled' }) do
    local score = redis.call('ZSCORE', keys[line], id)
    if score then
      redis.call('ZREM', keys[line], id)
      return line == 'throttled' and 'ready' or line, tonumber(score)
    end
  end
  if parked_type then
    local line = keys.parked_of .. parked_type
    local score = redis.call('ZSCORE', line, id)
    if score then
      redis.call('ZREM', line, id)
      if redis.call('HINCRBY', keys.parked, parked_type, -1) <= 0 then
        redis.call('HDEL', keys.parked, parked_type)
      end
      return 'ready', tonumber(score)
    end
  end
  return nil
end
