-- What the starts of late of a rate key say now: how many count, the window without what is past, and its newest part with
-- its count. A start counts until all of its part of the period is past, so that no window of the period holds too many.
local PARTS = 64
local ENTRY = 10 -- bytes of a part in a window: its number and how many started in it
local unpack_bytes, pack_bytes, part_of_text = struct.unpack, struct.pack, string.sub -- locals are the fast names of Lua

local function read_window(packed, part, period, now)
  local total, first, number, count = 0, 1, nil, nil
  for at = 1, #packed - ENTRY + 1, ENTRY do
    number, count = unpack_bytes('>I6I4', packed, at)
    if (number + 1) * part + period > now then
      total = total + count
    else
      first = at + ENTRY
    end
  end
  if first > 1 then
    packed = part_of_text(packed, first)
  end
  return total, packed, number, count
end
