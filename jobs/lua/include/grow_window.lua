-- The window of a rate key with `by` starts more, and its newest part with its count. Needs: read_window.
local function grow_window(packed, number, count, number_now, by)
  if packed == '' or number < number_now then
    number, count = number_now, 0
  else
    packed = #packed > ENTRY and part_of_text(packed, 1, -ENTRY - 1) or ''
  end
  count = count + by
  return packed .. pack_bytes('>I6I4', number, count), number, count
end
