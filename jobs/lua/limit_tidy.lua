-- Drops the windows of rate keys that have not been used for a whole period.
-- Reply: where to go on ('0' = that was all), how many were dropped
-- #include server_now
-- #include read_window
local clock = KEYS[1] -- string: high-water mark of server time
local windows = KEYS[2] -- hash: rate key -> starts of late
local given_now = ARGV[1] -- ms, '' = the server's clock
local period = tonumber(ARGV[2]) -- ms; 0: the type has no rate any more
local cursor = ARGV[3] -- where to go on, '0' at first
local count = ARGV[4] -- about so many are looked at

local now = server_now(clock, given_now)
local page = redis.call('HSCAN', windows, cursor, 'COUNT', count)
local over = {}
for i = 1, #page[2], 2 do
  local _, left = read_window(page[2][i + 1], period, now)
  if period == 0 or left == '' then
    over[#over + 1] = page[2][i]
  end
end
if over[1] then
  redis.call('HDEL', windows, unpack(over))
end
return { page[1], #over }
