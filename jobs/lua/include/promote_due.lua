-- Moves at most `limit` due jobs of one waiting line to the ready line, in order of their due time; returns how many.
-- Needs: record_fields, read_record, pack_record, ready_place.
local function promote_due(line_key, ready_key, states_key, sequence_key, now, limit)
  local due = redis.call('ZRANGEBYSCORE', line_key, '-inf', string.format('(%d', now + 1), 'LIMIT', 0, limit, 'WITHSCORES')
  local count = #due / 2
  if count == 0 then
    return 0
  end
  local ids = {}
  for i = 1, count do
    ids[i] = due[2 * i - 1]
  end
  local records = redis.call('HMGET', states_key, unpack(ids))
  local sequence = redis.call('INCRBY', sequence_key, count) - count
  local places, changed = {}, {}
  for i, id in ipairs(ids) do
    local score = tonumber(due[2 * i])
    local due_at = math.floor(score)
    local place = ready_place(100 - (score - due_at) * 256, sequence + i)
    places[2 * i - 1] = place
    places[2 * i] = id
    -- A job that was never touched has no record, and needs none for this step either.
    local record = records[i] and read_record(records[i], '')
    if record then
      record[STATE], record[READY_AT], record[PLACE] = 'ready', due_at, place
      changed[#changed + 1] = id
      changed[#changed + 1] = pack_record(record)
    end
  end
  redis.call('ZREMRANGEBYRANK', line_key, 0, count - 1) -- they stand first; by their ids each would be looked for
  redis.call('ZADD', ready_key, unpack(places))
  if changed[1] then
    redis.call('HSET', states_key, unpack(changed))
  end
  return count
end
