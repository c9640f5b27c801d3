-- The window of a rate key, as read_window tells of it, with `by` starts more; and its newest part with its count.
-- Needs: read_window.
local function grow_window(total, packed, newest, count, part_end, by)
  if packed == '' then
    return pack_bytes('>I6I4I4', part_end, by, by), part_end, by
  elseif newest < part_end then
    return part_of_text(packed, 1, -SUM - 1) .. pack_bytes('>I6I4I4', part_end, by, total + by), part_end, by
  end
  return part_of_text(packed, 1, -ENTRY - SUM - 1) .. pack_bytes('>I6I4I4', newest, count + by, total + by), newest, count + by
end
