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
  local before = redis.call('SET', clock_key, now, 'GET') -- both at once: it is hardly ever behind
  local mark = tonumber(before or nil)
  if mark and now < mark then
    redis.call('SET', clock_key, before)
    return mark
  end
  return now
end
