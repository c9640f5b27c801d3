-- The window of a rate key, as read_window tells of it, with `by` starts more; and its newest part with its count.
-- Needs: read_window.
local function grow_window(total, packed, number, count, number_now, by)
  if packed == '' then
    return pack_bytes('>I6I4I4', number_now, by, by), number_now, by
  elseif number < number_now then
    return part_of_text(packed, 1, -SUM - 1) .. pack_bytes('>I6I4I4', number_now, by, total + by), number_now, by
  end
  return part_of_text(packed, 1, -ENTRY - SUM - 1) .. pack_bytes('>I6I4I4', number, count + by, total + by), number, count + by
end
