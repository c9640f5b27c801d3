-- Puts jobs back in line that a limit holds back no more: behind the first job of the line, and behind those put back before.
-- State: ready (throttled) -> ready
-- Reply: for each job "ready", "paused" (the same, but nothing starts here now), or "gone" where it was not set aside
-- #include record_fields
-- #include read_record
-- #include pack_record
-- #include ready_place
-- #include wake_one
local control = KEYS[1] -- hash: paused; turn:<priority>: the last place given here
local throttled = KEYS[2] -- zset: id -> place
local ready = KEYS[3] -- zset: id -> place
local states = KEYS[4] -- hash: id -> record
local sequence = KEYS[5] -- string: last place given
local wake = KEYS[6] -- list: wake token
local items = 1 -- ARGV[1..]: id

local PLACES = 17592186044416 -- of one priority, see ready_place

-- The last place that was given to a job of this priority, and the first that is taken in the line.
local function turn_of(level)
  local turn = tonumber(redis.call('HGET', control, 'turn:' .. level) or 0)
  local low = string.format('%.0f', level * PLACES)
  local high = string.format('(%.0f', (level + 1) * PLACES)
  local head = redis.call('ZRANGEBYSCORE', ready, low, high, 'WITHSCORES', 'LIMIT', 0, 1)
  return math.max(turn, head[2] and tonumber(head[2]) - level * PLACES or 0)
end

local last = tonumber(redis.call('GET', sequence) or 0)
local turns, furthest = {}, last

-- Its old place, unless the line has moved past it.
local function place_again(place)
  local level = math.floor(place / PLACES)
  turns[level] = turns[level] or turn_of(level)
  local own = place - level * PLACES
  if own <= turns[level] then
    own = turns[level] + 1
    furthest = math.max(furthest, own)
  end
  turns[level] = own
  return ready_place(100 - level, own)
end

local found = redis.call('HEXISTS', control, 'paused') == 1 and 'paused' or 'ready'
local reply, changed, places = {}, {}, {}
for i, id in ipairs(ARGV) do
  local old = redis.call('ZSCORE', throttled, id)
  if old then
    local place = place_again(tonumber(old))
    local record = read_record(redis.call('HGET', states, id), 'ready')
    places[#places + 1] = place
    places[#places + 1] = id
    if record then
      record[PLACE] = place
      changed[#changed + 1] = id
      changed[#changed + 1] = pack_record(record)
    end
    redis.call('ZREM', throttled, id)
  end
  reply[i] = old and found or 'gone'
end
if places[1] then
  redis.call('ZADD', ready, unpack(places))
  if changed[1] then
    redis.call('HSET', states, unpack(changed))
  end
  for level, turn in pairs(turns) do
    redis.call('HSET', control, 'turn:' .. level, string.format('%.0f', turn))
  end
  if furthest > last then -- whoever comes from now on stands behind them
    redis.call('SET', sequence, string.format('%.0f', furthest))
  end
  wake_one(wake)
end
return reply
