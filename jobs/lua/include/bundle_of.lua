-- The token of the bundle that a job is leased in, by its record; nil for every other job.
-- A lease call that takes many untouched jobs ties them together: they share one record, in which nothing stands behind
-- STARTED_AT, and one entry in `leased`, a line break and the token. Their bundle keeps what differs: { token, line, … },
-- a line being id, place, id, place, …; `bundled` counts those that are still in it.
-- Needs: record_fields, record_bytes.
local function bundle_of(raw)
  local length = byte_at(raw, TOKEN_BYTE - 1)
  local worker_length = length and byte_at(raw, TOKEN_BYTE + length)
  if worker_length and #raw == TOKEN_BYTE + length + worker_length + 8 and byte_at(raw, STATE_BYTE) == LEASED_CODE then
    return part_of(raw, TOKEN_BYTE, TOKEN_BYTE - 1 + length)
  end
  return nil
end
