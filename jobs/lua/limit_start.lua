-- Lets leased jobs start by the rate of their type alone, as many as each key has starts left: what limit_take does, where
-- nobody waits and nobody was called, in one pass over the keys.
-- Reply: a letter for each job, key by key: g(o), e(nough go), r(ate holds it back). '' where somebody waits or was called,
-- and nothing was done
-- #include server_now
-- #include read_window
-- #include grow_window
-- #include end_of_part
-- #include write_windows
local clock = KEYS[1] -- string: high-water mark of server time
local called = KEYS[2] -- zset: job id -> until when its call is good
local windows = KEYS[3] -- hash: rate key -> starts of late
local waiters = KEYS[4] -- hash: job id -> packed route, key, rate key, order, line
local given_now = ARGV[1] -- ms, '' = the server's clock
local starts = tonumber(ARGV[2]) -- starts per rate key and period
local period = tonumber(ARGV[3]) -- ms
local most = tonumber(ARGV[4]) -- most jobs that are to start
local wanted = ARGV[5] -- packed: rate keys, and how many jobs of each; with one argument for each key the call costs twice as much

if redis.call('HLEN', waiters) > 0 or redis.call('ZCARD', called) > 0 then
  return ''
end
local now = server_now(clock, given_now)
local part_end = end_of_part(period, now)
local keys, sizes = unpack(cmsgpack.unpack(wanted))

local stored = redis.call('HMGET', windows, unpack(keys))
local letters, changed, seen = {}, {}, {} -- seen: a key may stand there again
local going = 0
for i = 1, #keys do
  local key, size = keys[i], sizes[i]
  local total, packed, newest, count = read_window(seen[key] or stored[i] or '', period, now)
  local free = math.min(size, math.max(0, starts - total))
  local go = math.min(free, most - going)
  if go > 0 then
    going = going + go
    packed = grow_window(total, packed, newest, count, part_end, go)
    local at = #changed
    changed[at + 1], changed[at + 2] = key, packed
    seen[key] = packed
  end
  if go == size then
    letters[i] = size == 1 and 'g' or string.rep('g', size)
  else
    letters[i] = string.rep('g', go) .. string.rep('e', free - go) .. string.rep('r', size - free)
  end
end
write_windows(windows, changed, period)
return table.concat(letters)
