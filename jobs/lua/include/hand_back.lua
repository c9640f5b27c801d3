-- Puts a leased job back at its old place in the ready line; a job that was asked to stop ends instead. Returns the state.
-- The token goes: who held it is told that the lease is lost, not that it ended in good order.
-- Needs: record_fields, pack_record, read_header, tally, tell_runs.
local function hand_back(id, record, now, keys)
  redis.call('ZREM', keys.leased, id)
  record[STARTED_AT] = 0
  if record[CANCEL] == 1 then
    record[STATE], record[FINISHED_AT] = 'cancelled', now
    redis.call('ZADD', keys.cancelled, now, id)
    local header = read_header(redis.call('HGET', keys.bodies, id))
    tally(keys.live, now, 'cancelled', header and header[2] or '', 1)
  else
    record[STATE], record[TOKEN] = 'ready', ''
    redis.call('ZADD', keys.ready, record[PLACE], id)
  end
  local packed = pack_record(record)
  redis.call('HSET', keys.states, id, packed)
  if record[STATE] == 'cancelled' then
    tell_runs(keys.lines, { id, packed })
  end
  return record[STATE]
end
