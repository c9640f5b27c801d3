-- What one call knows of a type's limits: places taken and starts of late by key, read once and written once (`settle`).
-- A start counts in its part of the period until all of that part is past, so that no window of the period holds too many.
-- keys: holders, counts, called, windows, waiters, due, line_of. concurrency and starts: nil where the type has no such limit.
local PARTS = 64

local function limit_state(keys, now, concurrency, starts, period)
  local state = { keys = keys, now = now, concurrency = concurrency, starts = starts }
  local part = period and math.max(1, math.floor(period / PARTS))
  local taken, windows = {}, {}
  local taken_changed, windows_changed = {}, {}

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

  local function window(key)
    local found = windows[key]
    if type(found) ~= 'table' then
      local packed = found or redis.call('HGET', keys.windows, key) or ''
      found = { total = 0 }
      for at = 1, #packed - 9, 10 do
        local number, count = struct.unpack('>I6I4', packed, at)
        if (number + 1) * part + period > now then
          found[#found + 1] = { number, count }
          found.total = found.total + count
        end
      end
      windows[key] = found
    end
    return found
  end

  function state.places_taken(key)
    if not taken[key] then
      taken[key] = tonumber(redis.call('HGET', keys.counts, key) or 0)
    end
    return taken[key]
  end

  function state.has_place(key)
    return not concurrency or state.places_taken(key) < concurrency
  end

  function state.has_start(key)
    return not starts or window(key).total < starts
  end

  -- When the key may start one more job, ms.
  function state.next_start(key)
    local found = window(key)
    local surplus = found.total - starts
    for _, entry in ipairs(found) do
      surplus = surplus - entry[2]
      if surplus < 0 then
        return (entry[1] + 1) * part + period
      end
    end
    return now
  end

  function state.change_places(key, by)
    taken[key] = math.max(0, state.places_taken(key) + by)
    taken_changed[key] = true
  end

  function state.add_start(key)
    if starts then
      local found, number = window(key), math.floor(now / part)
      local last = found[#found]
      if last and last[1] >= number then
        last[2] = last[2] + 1
      else
        found[#found + 1] = { number, 1 }
      end
      found.total = found.total + 1
      windows_changed[key] = true
    end
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
    local packed = {}
    for key in pairs(windows_changed) do
      local parts = {}
      for i, entry in ipairs(windows[key]) do
        parts[i] = struct.pack('>I6I4', entry[1], entry[2])
      end
      packed[#packed + 1] = key
      packed[#packed + 1] = table.concat(parts)
    end
    if packed[1] then
      redis.call('HSET', keys.windows, unpack(packed))
    end
  end

  return state
end
