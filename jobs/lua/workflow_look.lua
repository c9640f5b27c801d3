-- Says when a run is to be looked at next, and whether it is over.
-- Reply: when it will be looked at (ms), '' = never
-- #include server_now
local clock = KEYS[1] -- string: high-water mark of server time
local active = KEYS[2] -- zset: run -> when to look at it, ms
local ended = KEYS[3] -- zset: run -> when it ended, ms
local given_now = ARGV[1] -- ms, '' = the server's clock
local run = ARGV[2] -- its id
local seen = ARGV[3] -- only where this is when it was to be looked at (ms); '' = in any case
local wait = ARGV[4] -- ms until the next look, '' = none
local finished_at = ARGV[5] -- ms, '' = it goes on

local now = server_now(clock, given_now)
if finished_at == '' then
  redis.call('ZREM', ended, run)
else
  redis.call('ZADD', ended, finished_at, run)
end
local before = redis.call('ZSCORE', active, run)
if seen ~= '' and before and tonumber(before) ~= tonumber(seen) then
  return tonumber(before) -- somebody else has to do with it meanwhile
end
if wait == '' then
  redis.call('ZREM', active, run)
  return ''
end
local next_look = now + tonumber(wait)
redis.call('ZADD', active, next_look, run)
return next_look
