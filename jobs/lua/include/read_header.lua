-- The header of a body: { format, type, priority, max_retries, max_crashes, … }, or nil where the bytes are no body.
-- A body is created_at and run_at (doubles), the header's length (2 bytes), the header (MessagePack), the payload.
local function read_header(body)
  if not body or #body < 18 then
    return nil
  end
  local length = struct.unpack('>H', body, 17)
  local ok, header = pcall(cmsgpack.unpack, string.sub(body, 19, 18 + length))
  if ok and type(header) == 'table' and type(header[2]) == 'string' and type(header[3]) == 'number' then
    return header
  end
  return nil
end
