-- The record of a job; a fresh one in `fresh_state` where none is stored; nil where the stored bytes are no record.
local function read_record(raw, fresh_state)
  if not raw then
    return { fresh_state, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '', '' }
  end
  local ok, record = pcall(cmsgpack.unpack, raw)
  if not ok or type(record) ~= 'table' or #record < 16 or type(record[1]) ~= 'string' then
    return nil
  end
  for position = 2, 14 do
    if type(record[position]) ~= 'number' then
      return nil
    end
  end
  return record
end
