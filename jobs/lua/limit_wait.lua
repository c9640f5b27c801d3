-- Enters jobs that were set aside in the lines of their keys. Calls at once whom the limit lets through by now.
-- Reply: now, when a rate key with waiting jobs may start the next or '', how many jobs wait, then id and route of each job that was called
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
local route = ARGV[5] -- the partition where the jobs live
local items = 6 -- ARGV[6..]: id, key, rate key, order, place (16 digits), 'c' | 'r' (what holds it back)

local CALLS = 500 -- most jobs called at once

local now = server_now(clock, given_now)
local keys = { holders = holders, counts = counts, called = called, windows = windows, waiters = waiters, due = due, line_of = line_of }
local state = limit_state(keys, now, concurrency, starts, period)

local facts, lines, of_line = {}, {}, {}
for at = items, #ARGV, 6 do
  local id, place_key, rate_key, order, kind = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 5]
  facts[#facts + 1] = id
  facts[#facts + 1] = cmsgpack.pack({ route, place_key, rate_key, order, kind })
  local line = kind .. (kind == 'c' and place_key or rate_key)
  if not of_line[line] then
    of_line[line] = {}
    lines[#lines + 1] = line
  end
  local members = of_line[line]
  members[#members + 1] = order
  members[#members + 1] = ARGV[at + 4] .. '\n' .. id -- of those that became ready together, in the order of arrival
end
redis.call('HSET', waiters, unpack(facts))
local calls = {}
for _, line in ipairs(lines) do
  redis.call('ZADD', line_of .. line, unpack(of_line[line]))
  call_next(string.sub(line, 1, 1), string.sub(line, 2), CALLS - #calls / 2, state, calls)
end
state.settle()
return { now, next_turn(called, due), redis.call('HLEN', waiters), unpack(calls) }
