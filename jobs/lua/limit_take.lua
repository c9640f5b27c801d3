-- Asks leave to start leased jobs of one type: a place among those that run at once under their key, and a start in the
-- window of their rate key. Before that, gives the places of leases back that are over.
-- Reply: now, when there will be something to do without anybody asking or '', how many jobs wait, how many were called and
-- id and route of each; then for all jobs in their order one letter: g(o), c(oncurrency) or r(ate) holds it back, e(nough)
-- #include server_now
-- #include read_window
-- #include grow_window
-- #include end_of_part
-- #include write_windows
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
local route = ARGV[2] -- the partition where the jobs live
local concurrency = tonumber(ARGV[3]) -- places per key, '' = no limit
local starts = tonumber(ARGV[4]) -- starts per rate key and period, '' = no limit
local period = tonumber(ARGV[5]) -- ms
local most = tonumber(ARGV[6]) -- most jobs that are to start
local again = ARGV[7] -- '1': this may have been asked before, and what was given then counts
local over = ARGV[8] -- packed: "<id>\n<token>" of each lease that is over
local wanted = ARGV[9] -- packed: for each pair of keys: key, rate key, and "<id>\n<token>" of its jobs

local CALLS = 500 -- most jobs called at once

local now = server_now(clock, given_now)
local waiting = redis.call('HLEN', waiters)
local keys = { holders = holders, counts = counts, called = called, windows = windows, waiters = waiters, due = due, line_of = line_of }
local state = limit_state(keys, now, concurrency, starts, period)

local ended, groups = cmsgpack.unpack(over), cmsgpack.unpack(wanted)
local places, rates = {}, {}
for i, group in ipairs(groups) do
  places[i], rates[i] = group[1], group[2]
end
state.preload(places, rates)

local calls = {}
for _, key in ipairs(give_places(ended, state)) do
  if waiting > 0 then
    call_next('c', key, CALLS - #calls / 2, state, calls)
  end
end
local is_simple = again == '' and redis.call('ZCARD', called) == 0 -- nor was anybody called just now

local taken, letters = {}, {}
local going = 0

-- Takes a place for each of these jobs of a group, from `first` on.
local function hold(key, rate_key, jobs, first, count)
  if concurrency and count > 0 then
    local holding = holding_of(route, key)
    for position = first, first + count - 1 do
      local at = #taken
      taken[at + 1], taken[at + 2] = jobs[position], holding
    end
    state.change_places(key, count)
  end
  if starts and count > 0 then
    state.add_starts(rate_key, count)
  end
  going = going + count
end

-- How many of the next `count` jobs of these keys may start, and the letter of those behind them. Whoever waits goes first:
-- a newcomer finds the line taken. Those who have to wait are told so though no more are wanted: they shall stand in nobody's way.
local function leave_for(key, rate_key, count)
  local free, letter = count, 'e'
  if concurrency then
    local has_line = waiting > 0 and redis.call('EXISTS', line_of .. 'c' .. key) == 1
    free, letter = has_line and 0 or math.max(0, concurrency - state.places_taken(key)), 'c'
  end
  if starts and free > 0 then
    local has_line = waiting > 0 and redis.call('EXISTS', line_of .. 'r' .. rate_key) == 1
    local left = has_line and 0 or state.starts_left(rate_key)
    if left < free then
      free, letter = left, 'r'
    end
  end
  return math.min(free, count), letter
end

local function decide(group, first, count)
  local key, rate_key, jobs = unpack(group)
  local free, letter = leave_for(key, rate_key, count)
  local go = math.min(free, most - going)
  hold(key, rate_key, jobs, first, go)
  if go == count then
    letters[#letters + 1] = go == 1 and 'g' or string.rep('g', go)
  else
    letters[#letters + 1] = string.rep('g', go) .. string.rep('e', free - go) .. string.rep(letter, count - free)
  end
end

-- One by one, where some may have leave already: since they were called, or since this was asked before.
local function decide_singly(group)
  for position, field in ipairs(group[3]) do
    local id = string.match(field, '^(.*)\n') or field
    if again == '1' and redis.call('HEXISTS', holders, field) == 1 then
      going = going + 1
      letters[#letters + 1] = 'g'
    elseif not redis.call('ZSCORE', called, id) then
      decide(group, position, 1)
    elseif going >= most then
      letters[#letters + 1] = 'e'
    else
      redis.call('ZREM', called, id)
      if concurrency then
        redis.call('HDEL', holders, id .. '\n')
        taken[#taken + 1] = field
        taken[#taken + 1] = holding_of(route, group[1])
      end
      going = going + 1
      letters[#letters + 1] = 'g'
    end
  end
end

for _, group in ipairs(groups) do
  if is_simple then
    decide(group, 1, #group[3])
  else
    decide_singly(group)
  end
end
if taken[1] then
  redis.call('HSET', holders, unpack(taken))
end
state.settle()

local reply = { now, waiting > 0 and next_turn(called, due) or '', waiting, #calls / 2, unpack(calls) }
reply[#reply + 1] = table.concat(letters)
return reply
