-- Server time in milliseconds that never goes back: the partition keeps a high-water mark (a clock that is set back
-- stands still until it has caught up). `given` replaces the server's clock in tests; '' in production.
local function server_now(clock_key, given)
  local now
  if given == '' then
    local time = redis.call('TIME')
    now = time[1] * 1000 + math.floor(time[2] / 1000)
  else
    now = tonumber(given)
  end
  local mark = tonumber(redis.call('GET', clock_key) or 0)
  if now <= mark then
    return mark
  end
  redis.call('SET', clock_key, now)
  return now
end
