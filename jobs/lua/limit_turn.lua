-- Takes back calls that nobody answered, and gives the starts that are due to the keys that wait for them, in turn.
-- Reply: now, when there will be something to do again or '', how many jobs wait, then id and route of each job that was called
-- #include server_now
-- #include read_window
-- #include grow_window
-- #include end_of_part
-- #include write_windows
-- #include limit_state
-- #include call_next
-- #include next_turn
local clock = KEYS[1] -- string: high-water mark of server time
local holders = KEYS[2] -- hash: "<job id>\n<token>" -> "<route>\n<key>"
local counts = KEYS[3] -- hash: key -> places taken
local called = KEYS[4] -- zset: job id -> until when its call is good
local windows = KEYS[5] -- hash: rate key -> starts of late
local waiters = KEYS[6] -- hash: job id -> packed route, key, rate key, order, line ("c" or "r")
local due = KEYS[7] -- zset: rate key with waiting jobs -> its next start
local line_of = KEYS[8] -- prefix: one zset of waiting jobs per key
local given_now = ARGV[1] -- ms, '' = the server's clock
local concurrency = tonumber(ARGV[2]) -- places per key, '' = no limit
local starts = tonumber(ARGV[3]) -- starts per rate key and period, '' = no limit
local period = tonumber(ARGV[4]) -- ms

local CALLS = 500 -- most jobs called at once

local now = server_now(clock, given_now)
local keys = { holders = holders, counts = counts, called = called, windows = windows, waiters = waiters, due = due, line_of = line_of }
local state = limit_state(keys, now, concurrency, starts, period)
local until_now = string.format('%.0f', now)

local calls, freed = {}, {}
local unanswered = redis.call('ZRANGEBYSCORE', called, '-inf', until_now, 'LIMIT', 0, CALLS)
if unanswered[1] then
  redis.call('ZREM', called, unpack(unanswered))
  for _, id in ipairs(unanswered) do
    local holding = redis.call('HGET', holders, id .. '\n')
    if holding then
      local key = string.match(holding, '\n(.*)$') or ''
      redis.call('HDEL', holders, id .. '\n')
      state.change_places(key, -1)
      freed[key] = true
    end
  end
  for key in pairs(freed) do
    call_next('c', key, CALLS - #calls / 2, state, calls)
  end
end

-- One job of each key, then one of each again: a key with many starts to spare does not go before all others.
local turn = redis.call('ZRANGEBYSCORE', due, '-inf', until_now, 'LIMIT', 0, CALLS)
while turn[1] and #calls < 2 * CALLS do
  local again = {}
  for _, key in ipairs(turn) do
    if call_next('r', key, math.min(1, CALLS - #calls / 2), state, calls) == 1 then
      again[#again + 1] = key
    end
  end
  turn = again
end
state.settle()
return { now, next_turn(called, due), redis.call('HLEN', waiters), unpack(calls) }
