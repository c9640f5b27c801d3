-- A worker died while it ran this job: one more crash; the job is ready again, or buried once its crash budget is spent.
-- Returns the state. Needs: record_fields, pack_record, read_header, append_attempt, hand_back, tally, tell_runs.
local function charge_crash(id, record, now, failure, keys, attempts_kept)
  local header = read_header(redis.call('HGET', keys.bodies, id))
  local max_crashes = header and tonumber(header[5]) or 0
  local type = header and header[2] or ''
  record[CRASHES], record[LOST] = record[CRASHES] + 1, 0
  append_attempt(keys.attempts, id, record, now, 'crashed', failure, attempts_kept)
  tally(keys.live, now, 'crashed', type, 1)
  if record[CANCEL] == 0 and record[CRASHES] >= max_crashes then
    redis.call('ZREM', keys.leased, id)
    record[STATE], record[FINISHED_AT] = 'dead', now
    redis.call('ZADD', keys.dead, now, id)
    local packed = pack_record(record)
    redis.call('HSET', keys.states, id, packed)
    tell_runs(keys.lines, { id, packed })
    tally(keys.live, now, 'dead', type, 1)
    return 'dead'
  end
  return hand_back(id, record, now, keys)
end
