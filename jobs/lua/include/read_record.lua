-- The record of a job; a fresh one in `fresh_state` where none is stored; nil where the stored bytes are no record.
-- Needs: record_fields.
local function unpack_record(raw)
  return { struct.unpack(RECORD, raw) }
end

local function read_record(raw, fresh_state)
  if not raw then
    return { fresh_state, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '', '', 0, '0' }
  end
  local ok, record = pcall(unpack_record, raw)
  if not ok or not STATE_OF[record[STATE]] then
    return nil
  end
  local place = string.sub(raw, record[PLACE])
  record[STATE], record[PLACE] = STATE_OF[record[STATE]], tonumber(place) and place or '0'
  return record
end
