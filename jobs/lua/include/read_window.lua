-- What the window of a rate key says now: how many starts count, the window without what is past, its newest part and the
-- count of that. A start counts until all of its part of the period is past, so that no window of the period holds too many.
-- A window is a text: parts in their order, each when it ends (ms) and how many started in it, and the sum of all behind
-- them. So a key that starts all the time, and has many parts, costs no more than one with a single part. Moments, not the
-- numbers of parts: when the period of a rate is changed, what was counted before keeps its place in time.
local ENTRY, SUM = 10, 4 -- bytes
local unpack_bytes, pack_bytes, part_of_text = struct.unpack, struct.pack, string.sub -- locals are the fast names of Lua

local function read_window(packed, period, now)
  local last = #packed - ENTRY - SUM + 1
  if last < 1 then
    return 0, ''
  end
  local newest, count, total = unpack_bytes('>I6I4I4', packed, last)
  local past = now - period
  if newest <= past then
    return 0, ''
  end
  local first = 1
  while first < last do
    local old, started = unpack_bytes('>I6I4', packed, first)
    if old > past then
      break
    end
    total, first = total - started, first + ENTRY
  end
  if first > 1 then
    packed = part_of_text(packed, first)
  end
  return total, packed, newest, count
end
