-- The record of a job that is leased under this very token, or nil.
-- Needs: record_fields, read_record.
local function held_record(raw, token)
  local record = raw and read_record(raw, '')
  if record and record[STATE] == 'leased' and record[TOKEN] == token then
    return record
  end
  return nil
end
