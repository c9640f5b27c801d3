-- What one call knows of a type's limits: places taken and starts of late by key, read once and written once (`settle`).
-- keys: holders, counts, called, windows, waiters, due, line_of. concurrency and starts: nil where the type has no such limit.
-- Needs: read_window, grow_window, end_of_part, write_windows.

-- Who has a place, and where. So long that the hash of holders is a table from the start: in its compact form each look-up
-- would walk through all of them.
local function holding_of(route, key)
  return string.format('%-66s\n%s', route, key)
end

local function limit_state(keys, now, concurrency, starts, period)
  local state = { keys = keys, now = now, concurrency = concurrency, starts = starts }
  local part_end = period and end_of_part(period, now)
  local taken, taken_changed = {}, {}
  local windows, totals, changed = {}, {}, {}
  local last_part, last_count = {}, {}

  -- Reads the facts of many keys at once; keys that are asked for later are read one by one.
  function state.preload(places, rates)
    if concurrency and places[1] then
      for i, count in ipairs(redis.call('HMGET', keys.counts, unpack(places))) do
        taken[places[i]] = tonumber(count or 0)
      end
    end
    if starts and rates[1] then
      for i, packed in ipairs(redis.call('HMGET', keys.windows, unpack(rates))) do
        windows[rates[i]] = packed or ''
      end
    end
  end

  -- How many starts of the key count now. What is past is cut off its window.
  local function total_of(key)
    if totals[key] then
      return totals[key]
    end
    local packed = windows[key] or redis.call('HGET', keys.windows, key) or ''
    totals[key], windows[key], last_part[key], last_count[key] = read_window(packed, period, now)
    return totals[key]
  end

  function state.places_taken(key)
    if not taken[key] then
      taken[key] = tonumber(redis.call('HGET', keys.counts, key) or 0)
    end
    return taken[key]
  end

  -- The key that has all places that are taken; nil where several have some, or none has. As it was before this call.
  function state.only_key()
    return redis.call('HLEN', keys.counts) == 1 and redis.call('HKEYS', keys.counts)[1] or nil
  end

  function state.has_place(key)
    return not concurrency or state.places_taken(key) < concurrency
  end

  function state.starts_left(key)
    return math.max(0, starts - total_of(key))
  end

  function state.has_start(key)
    return not starts or total_of(key) < starts
  end

  -- When the key may start one more job, ms.
  function state.next_start(key)
    local surplus = total_of(key) - starts
    local packed = windows[key]
    for at = 1, #packed - ENTRY - SUM + 1, ENTRY do
      local ended, count = unpack_bytes('>I6I4', packed, at)
      surplus = surplus - count
      if surplus < 0 then
        return ended + period
      end
    end
    return now
  end

  function state.change_places(key, by)
    taken[key] = math.max(0, state.places_taken(key) + by)
    taken_changed[key] = true
  end

  function state.add_starts(key, count)
    if not starts then
      return
    end
    local total = total_of(key)
    windows[key], last_part[key], last_count[key] =
      grow_window(total, windows[key], last_part[key], last_count[key], part_end, count)
    totals[key] = total + count
    changed[key] = true
  end

  function state.settle()
    local counts, free = {}, {}
    for key in pairs(taken_changed) do
      if taken[key] > 0 then
        counts[#counts + 1] = key
        counts[#counts + 1] = taken[key]
      else
        free[#free + 1] = key
      end
    end
    if counts[1] then
      redis.call('HSET', keys.counts, unpack(counts))
    end
    if free[1] then
      redis.call('HDEL', keys.counts, unpack(free))
    end
    local written = {}
    for key in pairs(changed) do
      written[#written + 1] = key
      written[#written + 1] = windows[key]
    end
    write_windows(keys.windows, written, period)
  end

  return state
end
