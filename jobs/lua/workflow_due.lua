-- Hands out runs that are to be looked at, for a while.
-- Reply: now, then run and until when it is the caller's (ms)
-- #include server_now
local clock = KEYS[1] -- string: high-water mark of server time
local active = KEYS[2] -- zset: run -> when to look at it, ms
local given_now = ARGV[1] -- ms, '' = the server's clock
local claim_ms = tonumber(ARGV[2]) -- for how long they are handed out
local limit = tonumber(ARGV[3]) -- most runs

local now = server_now(clock, given_now)
local reply = { now }
for _, run in ipairs(redis.call('ZRANGEBYSCORE', active, '-inf', string.format('%.0f', now), 'LIMIT', 0, limit)) do
  redis.call('ZADD', active, now + claim_ms, run)
  reply[#reply + 1] = run
  reply[#reply + 1] = now + claim_ms
end
return reply
