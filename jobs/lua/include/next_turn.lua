-- When there is something to do without anybody asking: a start of a rate key with waiting jobs, or a call that runs out; ms or ''.
local function next_turn(called_key, due_key)
  local soonest = ''
  for _, key in ipairs({ called_key, due_key }) do
    local head = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
    if head[2] and (soonest == '' or tonumber(head[2]) < soonest) then
      soonest = math.floor(tonumber(head[2]))
    end
  end
  return soonest
end
