-- Removes all that the attempts of these jobs have logged.
-- Needs: log_entries.
local function forget_logs(ids, logs, log_of)
  if redis.call('EXISTS', logs) == 0 then
    return
  end
  for i, stored in ipairs(redis.call('HMGET', logs, unpack(ids))) do
    for _, entry in ipairs(log_entries(stored)) do
      redis.call('UNLINK', log_of .. string.format('%d', entry[1]) .. ':' .. ids[i])
    end
  end
  redis.call('HDEL', logs, unpack(ids))
end
