-- Lets jobs start by their rate alone, as many as each key has starts left, in one pass: what `limit_state` does, without its
-- memory of places and lines, which costs more than all else where each job has a key of its own.
-- ARGV from `first`: key, rate key, number of jobs and their "<id>\n<token>", over and over. Returns the letters of the jobs. Needs: limit_state (its constants).
local function take_starts(windows_key, now, starts, period, most, first)
  local part = math.max(1, math.floor(period / PARTS))
  local number_now = math.floor(now / part)
  local unpack_entry, pack_entry, cut = struct.unpack, struct.pack, string.sub
  local single = pack_entry('>I6I4', number_now, 1)

  local rates, sizes, count = {}, {}, 0
  local at, last = first, #ARGV
  while at < last do
    count = count + 1
    local size = tonumber(ARGV[at + 2])
    rates[count], sizes[count] = ARGV[at + 1], size
    at = at + 3 + size
  end
  local packed_of, found = {}, redis.call('HMGET', windows_key, unpack(rates))

  local letters, written, going = {}, {}, 0
  for i = 1, count do
    local key, size = rates[i], sizes[i]
    local packed = packed_of[key] or found[i] or ''
    local total, from, number, number_count = 0, 1, 0, 0
    for entry = 1, #packed - ENTRY + 1, ENTRY do
      number, number_count = unpack_entry('>I6I4', packed, entry)
      if (number + 1) * part + period > now then
        total = total + number_count
      else
        from = entry + ENTRY
      end
    end
    local free = size
    if starts - total < size then
      free = math.max(0, starts - total)
    end
    local go = free
    if most - going < free then
      go = most - going
    end
    if go > 0 then
      going = going + go
      if from <= #packed and number >= number_now then
        packed = cut(packed, from, -ENTRY - 1) .. pack_entry('>I6I4', number, number_count + go)
      else
        packed = (from > 1 and cut(packed, from) or packed) .. (go == 1 and single or pack_entry('>I6I4', number_now, go))
      end
      if not packed_of[key] then
        written[#written + 1] = key
      end
      packed_of[key] = packed
    end
    if go == size then
      letters[i] = size == 1 and 'g' or string.rep('g', size)
    else
      letters[i] = string.rep('g', go) .. string.rep('e', free - go) .. string.rep('r', size - free)
    end
  end
  local fields = {}
  for i, key in ipairs(written) do
    fields[2 * i - 1], fields[2 * i] = key, packed_of[key]
  end
  if fields[1] then
    redis.call('HSET', windows_key, unpack(fields))
  end
  return table.concat(letters)
end
