-- Asks leave to start leased jobs of one type: a place among those that run at once under their key, and a start in the
-- window of their rate key. Before that, gives the places of leases back that are over.
-- Reply: now, when there will be something to do without anybody asking or '', how many jobs wait, how many were called and
-- id and route of each, then for each job "go" | "concurrency" | "rate" (which limit holds it back) | "enough"
-- #include server_now
-- #include limit_state
-- #include call_next
-- #include next_turn
-- #include give_places
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
local again = ARGV[8] -- '1': this may have been asked before, and what was given then counts
local over = tonumber(ARGV[9]) -- how many leases are over
local items = 10 -- ARGV[10..]: id and token of each of those, then id, key, rate key of each job

local CALLS = 500 -- most jobs called at once

local now = server_now(clock, given_now)
local keys = { holders = holders, counts = counts, called = called, windows = windows, waiters = waiters, due = due, line_of = line_of }
local state = limit_state(keys, now, concurrency, starts, period)
local first = items + 2 * over
local total = (#ARGV - first + 1) / 3

local ended = {}
for i = 1, over do
  ended[i] = ARGV[items + 2 * i - 2] .. '\n' .. ARGV[items + 2 * i - 1]
end
local ids, places, rates = {}, {}, {}
local seen_place, seen_rate = {}, {}
for i = 1, total do
  local at = first + 3 * i - 3
  local place_key, rate_key = ARGV[at + 1], ARGV[at + 2]
  ids[i] = ARGV[at]
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

local calls = {}
local waiting = redis.call('HLEN', waiters)
local some_wait = waiting > 0
for _, key in ipairs(give_places(ended, state)) do
  if some_wait then
    call_next('c', key, CALLS - #calls / 2, state, calls)
  end
end

local held = {}
if again == '1' and concurrency then
  for i, id in ipairs(ids) do
    held[i] = redis.call('HEXISTS', holders, id .. '\n' .. token) == 1
  end
end
local was_called = redis.call('ZCARD', called) > 0 and redis.call('ZMSCORE', called, unpack(ids)) or {}

-- Whoever waits goes first: a newcomer finds the line taken.
local lines = {}
local function others_wait(line)
  if some_wait and lines[line] == nil then
    lines[line] = redis.call('EXISTS', line_of .. line) == 1
  end
  return lines[line]
end

local reply = { now, '', waiting, #calls / 2, unpack(calls) }
local answers = #reply
local taken, answered = {}, {}
local going = 0
for i = 1, total do
  local at = first + 3 * i - 3
  local place_key, rate_key = ARGV[at + 1], ARGV[at + 2]
  local answer = 'go'
  if not held[i] then
    -- Also of those beyond what is wanted: who has to wait shall not stand in the way of others.
    if was_called[i] then
      if going >= most then
        answer = 'enough'
      else
        answered[#answered + 1] = ids[i]
      end
    elseif concurrency and (others_wait('c' .. place_key) or not state.has_place(place_key)) then
      answer = 'concurrency'
    elseif starts and (others_wait('r' .. rate_key) or not state.has_start(rate_key)) then
      answer = 'rate'
    elseif going >= most then
      answer = 'enough'
    else
      if concurrency then
        state.change_places(place_key, 1)
      end
      if starts then
        state.add_start(rate_key)
      end
    end
    if concurrency and answer == 'go' then
      taken[#taken + 1] = ids[i] .. '\n' .. token
      taken[#taken + 1] = route .. '\n' .. place_key
    end
  end
  if answer == 'go' then
    going = going + 1
  end
  reply[answers + i] = answer
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
if some_wait then
  reply[2] = next_turn(called, due)
end
return reply
