-- Gives those of these jobs that are leased in a bundle a record with their place and a lease of their own. That changes
-- no fact, so a script may do it before its checks: from then on these jobs are like all others. Returns which they were.
-- `holds`: the token under which the caller holds all of them, or that of each in a table; nil where it need not.
-- Needs: record_fields, record_bytes, bundle_of, leave_bundle, read_bundle.
local function untie(keys, ids, holds)
  local tied = {}
  if not ids[1] then
    return tied
  end
  local places_of, deadline_of, left_of = {}, {}, {}
  local records, deadlines, is_done = {}, {}, {}
  for i, raw in ipairs(redis.call('HMGET', keys.states, unpack(ids))) do
    local id, token = ids[i], raw and bundle_of(raw)
    local held = type(holds) == 'table' and holds[i] or holds
    if token and not is_done[id] and (not held or held == token) then
      if not places_of[token] then
        local _, places = read_bundle(keys, token)
        places_of[token], left_of[token] = places, 0
        deadline_of[token] = redis.call('ZSCORE', keys.leased, '\n' .. token) or '0'
      end
      local place = places_of[token][id]
      local at = #records
      is_done[id], left_of[token], tied[#tied + 1] = true, left_of[token] + 1, id
      records[at + 1], records[at + 2] = id, raw .. (place and string.match(place, '^%d+$') or '0')
      deadlines[at + 1], deadlines[at + 2] = deadline_of[token], id
    end
  end
  if records[1] then
    redis.call('HSET', keys.states, unpack(records))
    redis.call('ZADD', keys.leased, unpack(deadlines))
    for token, number in pairs(left_of) do
      leave_bundle(keys, token, number)
    end
  end
  return tied
end
