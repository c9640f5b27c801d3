-- Writes a run into the lists of all runs, before it begins: whoever dies over it leaves it to others.
-- Reply: 1 if there was no run before, else 0
-- #include server_now
local clock = KEYS[1] -- string: high-water mark of server time
local active = KEYS[2] -- zset: run -> when to look at it, ms
local runs = KEYS[3] -- zset: run -> when it was created, ms
local named = KEYS[4] -- zset: run of one workflow -> when it was created, ms
local given_now = ARGV[1] -- ms, '' = the server's clock
local run = ARGV[2] -- its id
local wait = tonumber(ARGV[3]) -- ms after which somebody else sees to it

local now = server_now(clock, given_now)
redis.call('ZADD', active, now + wait, run)
local is_first = redis.call('EXISTS', runs) == 0
redis.call('ZADD', runs, 'NX', now, run)
redis.call('ZADD', named, 'NX', now, run)
return is_first and 1 or 0
