-- Puts a leased job back at its old place in the ready line; a job that was asked to stop ends instead. Returns the state.
-- Needs: record_fields.
local function hand_back(id, record, now, leased_key, ready_key, cancelled_key, states_key)
  redis.call('ZREM', leased_key, id)
  record[STARTED_AT] = 0
  if record[CANCEL] == 1 then
    record[STATE], record[FINISHED_AT] = 'cancelled', now
    redis.call('ZADD', cancelled_key, now, id)
  else
    record[STATE] = 'ready'
    redis.call('ZADD', ready_key, record[PLACE], id)
  end
  redis.call('HSET', states_key, id, cmsgpack.pack(record))
  return record[STATE]
end
