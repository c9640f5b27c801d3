-- Adds one ended attempt to a job's history, dropping the oldest beyond `keep`. Stored as a count byte and the packed
-- entries { attempt, worker, started_at, finished_at, outcome, error JSON }.
-- Needs: record_fields.
local function append_attempt(attempts_key, id, record, now, outcome, failure, keep)
  local entry = cmsgpack.pack({ record[ATTEMPT], record[WORKER], record[STARTED_AT], now, outcome, failure })
  local stored = redis.call('HGET', attempts_key, id)
  local count, entries = 0, ''
  if stored and #stored > 0 then
    count, entries = string.byte(stored, 1), string.sub(stored, 2)
  end
  if count >= keep then
    local ok, offset = pcall(cmsgpack.unpack_one, entries)
    entries = ok and offset > 0 and string.sub(entries, offset + 1) or ''
    count = entries == '' and 0 or count - 1
  end
  redis.call('HSET', attempts_key, id, string.char(count + 1) .. entries .. entry)
end
