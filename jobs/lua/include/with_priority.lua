-- A body with another priority in its header; every other byte stays as it is (see read_header for the layout). The type
-- is a text of MessagePack, and the priority is the whole number behind it: one byte, or two below -32.
local function with_priority(body, priority)
  local code = string.byte(body, 21)
  local length = code - 160
  local at = 22 + length
  if code == 217 then
    at = 23 + string.byte(body, 22)
  elseif code == 218 then
    at = 24 + struct.unpack('>H', body, 22)
  end
  local old = string.byte(body, at) == 208 and 2 or 1
  local new = cmsgpack.pack(priority)
  local header = struct.unpack('>H', body, 17) + #new - old
  return string.sub(body, 1, 16) .. struct.pack('>H', header) .. string.sub(body, 19, at - 1) .. new .. string.sub(body, at + old)
end
