-- Asks leave to start leased jobs of one type: a place among those that run at once under their key, and a start in the
-- window of their rate key. A call that is made again finds what it was given.
-- Reply: now, then for each job "go" | "concurrency" | "rate" (which limit holds it back) | "enough"
-- #include server_now
-- #include limit_state
local clock = KEYS[1] -- string: high-water mark of server time
local holders = KEYS[2] -- hash: "<job id>\n<token>" -> "<route>\n<key>": who has a place; no token: was called, and may take it
local counts = KEYS[3] -- hash: key -> places taken
local called = KEYS[4] -- zset: job id -> until when its call is good
local windows = KEYS[5] -- hash: rate key -> starts of late
local waiters = KEYS[6] -- hash: job id -> packed route, key, rate key, order, line ("c" or "r")
local due = KEYS[7] -- zset: rate key with waiting jobs -> its next start
local line_of = KEYS[8] -- prefix: one zset of waiting jobs per key, "c<key>" and "r<rate key>"
local given_now = ARGV[1] -- ms, '' = the server's clock
local token = ARGV[2] -- of the lease
local route = ARGV[3] -- the partition where the jobs live
local concurrency = tonumber(ARGV[4]) -- places per key, '' = no limit
local starts = tonumber(ARGV[5]) -- starts per rate key and period, '' = no limit
local period = tonumber(ARGV[6]) -- ms
local most = tonumber(ARGV[7]) -- most jobs that are to start
local items = 8 -- ARGV[8..]: id, key, rate key

local now = server_now(clock, given_now)
local keys = { counts = counts, windows = windows }
local state = limit_state(keys, now, concurrency, starts, period)

local total = (#ARGV - items + 1) / 3
local ids, places, rates, fields = {}, {}, {}, {}
local seen_place, seen_rate = {}, {}
for i = 1, total do
  local at = items + 3 * i - 3
  local id, place_key, rate_key = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  ids[i] = id
  fields[i] = id .. '\n' .. token
  if concurrency and not seen_place[place_key] then
    seen_place[place_key] = true
    places[#places + 1] = place_key
  end
  if starts and not seen_rate[rate_key] then
    seen_rate[rate_key] = true
    rates[#rates + 1] = rate_key
  end
end
state.preload(places, rates)
local held = concurrency and redis.call('HMGET', holders, unpack(fields)) or {}
local calls = redis.call('ZCARD', called) > 0 and redis.call('ZMSCORE', called, unpack(ids)) or {}
local some_wait = redis.call('HLEN', waiters) > 0

-- Whoever waits goes first: a newcomer finds the line taken.
local lines = {}
local function others_wait(line)
  if some_wait and lines[line] == nil then
    lines[line] = redis.call('EXISTS', line_of .. line) == 1
  end
  return lines[line]
end

local reply, taken, answered = { now }, {}, {}
local going = 0
for i = 1, total do
  local at = items + 3 * i - 3
  local place_key, rate_key = ARGV[at + 1], ARGV[at + 2]
  local answer = 'go'
  if not held[i] then
    -- Also of those beyond what is wanted: who has to wait shall not stand in the way of others.
    if not calls[i] and concurrency and (others_wait('c' .. place_key) or not state.has_place(place_key)) then
      answer = 'concurrency'
    elseif not calls[i] and starts and (others_wait('r' .. rate_key) or not state.has_start(rate_key)) then
      answer = 'rate'
    elseif going >= most then
      answer = 'enough'
    elseif calls[i] then
      answered[#answered + 1] = ids[i]
    else
      if concurrency then
        state.change_places(place_key, 1)
      end
      state.add_start(rate_key)
    end
    if answer == 'go' and concurrency then
      taken[#taken + 1] = fields[i]
      taken[#taken + 1] = route .. '\n' .. place_key
    end
  end
  if answer == 'go' then
    going = going + 1
  end
  reply[1 + i] = answer
end

if taken[1] then
  redis.call('HSET', holders, unpack(taken))
end
if answered[1] then
  redis.call('ZREM', called, unpack(answered))
  for i, id in ipairs(answered) do
    answered[i] = id .. '\n'
  end
  redis.call('HDEL', holders, unpack(answered))
end
state.settle()
return reply
