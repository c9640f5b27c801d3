-- Calls the first jobs of one line while their limits have room, at most `most`: takes the place and the start for them. A
-- job that the other limit of its type holds back moves to that limit's line. Returns how many were called; `calls` gets id
-- and route of each. kind: 'c' (places) or 'r' (starts). Needs: limit_state.
local CALL_MS = 10000 -- how long a call is good for: as long as a lease mostly is

local function call_next(kind, key, most, state, calls)
  local keys = state.keys
  local line = keys.line_of .. kind .. key
  local count = 0
  while count < most do
    local member = redis.call('ZRANGE', line, 0, 0)[1]
    if not member then
      break
    end
    local id = string.sub(member, 18) -- behind the place and a line break
    local ok, waiter = pcall(cmsgpack.unpack, redis.call('HGET', keys.waiters, id) or '')
    if not ok or type(waiter) ~= 'table' or not waiter[4] then
      redis.call('ZREM', line, member) -- nobody knows it: a service puts it back
      redis.call('HDEL', keys.waiters, id)
    else
      local route, place_key, rate_key, order = waiter[1], waiter[2], waiter[3], waiter[4]
      local other = nil
      if not state.has_place(place_key) then
        other = 'c'
      elseif not state.has_start(rate_key) then
        other = 'r'
        redis.call('ZADD', keys.due, state.next_start(rate_key), rate_key)
      end
      if other == kind then
        break
      end
      redis.call('ZREM', line, member)
      if other then
        redis.call('ZADD', keys.line_of .. other .. (other == 'c' and place_key or rate_key), order, member)
        redis.call('HSET', keys.waiters, id, cmsgpack.pack({ route, place_key, rate_key, order, other }))
      else
        redis.call('HDEL', keys.waiters, id)
        redis.call('ZADD', keys.called, state.now + CALL_MS, id)
        if state.concurrency then
          redis.call('HSET', keys.holders, id .. '\n', holding_of(route, place_key))
          state.change_places(place_key, 1)
        end
        state.add_starts(rate_key, 1)
        count = count + 1
        calls[#calls + 1] = id
        calls[#calls + 1] = route
      end
    end
  end
  if kind == 'r' and redis.call('EXISTS', line) == 0 then
    redis.call('ZREM', keys.due, key)
  end
  return count
end
