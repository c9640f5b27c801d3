-- When the next waiting job is due (ms), or ''.
local function next_due(scheduled_key, retry_wait_key)
  local soonest = ''
  for _, key in ipairs({ scheduled_key, retry_wait_key }) do
    local head = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
    if head[2] then
      local due = math.floor(tonumber(head[2]))
      if soonest == '' or due < soonest then
        soonest = due
      end
    end
  end
  return soonest
end
