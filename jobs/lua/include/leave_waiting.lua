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
  -- It may be parked for its type, or with a paused run, whose lines begin with a line break.
  for _, name in ipairs(redis.call('HKEYS', keys.parked)) do
    local may_hold_it = name == parked_type or string.sub(name, 1, 1) == '\n'
    local score = may_hold_it and redis.call('ZSCORE', keys.parked_of .. name, id)
    if score then
      redis.call('ZREM', keys.parked_of .. name, id)
      if redis.call('HINCRBY', keys.parked, name, -1) <= 0 then
        redis.call('HDEL', keys.parked, name)
      end
      return 'ready', tonumber(score)
    end
  end
  return nil
end
