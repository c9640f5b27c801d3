-- Gives places back, and calls the next in line.
-- Reply: now, when a rate key with waiting jobs may start the next or '', how many jobs wait, then id and route of each job that was called
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
local over = ARGV[5] -- packed: "<id>\n<token>" of each; without a token: a call that nobody will answer

local CALLS = 500 -- most jobs called at once

local now = server_now(clock, given_now)
local keys = { holders = holders, counts = counts, called = called, windows = windows, waiters = waiters, due = due, line_of = line_of }
local state = limit_state(keys, now, concurrency, starts, period)

local fields, ids = cmsgpack.unpack(over), {}
for _, field in ipairs(fields) do
  if string.byte(field, -1) == 10 then -- nothing behind the line break
    ids[#ids + 1] = string.sub(field, 1, -2)
  end
end

local freed = give_places(fields, state)
if ids[1] then
  redis.call('ZREM', called, unpack(ids))
end

local calls = {}
if freed[1] and redis.call('HLEN', waiters) > 0 then
  for _, key in ipairs(freed) do
    call_next('c', key, CALLS - #calls / 2, state, calls)
  end
end
state.settle()
return { now, next_turn(called, due), redis.call('HLEN', waiters), unpack(calls) }
