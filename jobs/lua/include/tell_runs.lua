-- Jobs that are nodes of workflows and have ended, or live again: their records go to the outbox, from where their runs are
-- told. `changed`: id, record, id, record, … Where no job is a node this is one look for a key that is not there.
local function tell_runs(lines, changed)
  local nodes = lines .. 'nodes'
  if not changed[1] or redis.call('EXISTS', nodes) == 0 then
    return
  end
  local ids, news = {}, {}
  for i = 1, #changed / 2 do
    ids[i] = changed[2 * i - 1]
  end
  for i, node in ipairs(redis.call('HMGET', nodes, unpack(ids))) do
    if node then
      news[#news + 1] = ids[i]
      news[#news + 1] = changed[2 * i]
    end
  end
  if news[1] then
    redis.call('HSET', lines .. 'outbox', unpack(news))
  end
end
