-- Mutes an error or a job type, or lets it shout again; what is over is dropped on the way.
-- Reply: "1" where there was something to drop for '', else "ok"
-- #include server_now
local clock = KEYS[1] -- string: high-water mark of server time
local mutes = KEYS[2] -- hash: kind and subject -> until when (ms), a space, JSON
local given_now = ARGV[1] -- ms, '' = the server's clock
local name = ARGV[2] -- kind and subject
local facts = ARGV[3] -- until when (ms), a space, JSON; '' = it shouts again

local now = server_now(clock, given_now)
local before = redis.call('HGETALL', mutes)
for i = 1, #before, 2 do
  if (tonumber(string.match(before[i + 1], '^%d+')) or 0) <= now then
    redis.call('HDEL', mutes, before[i])
  end
end
if facts == '' then
  return tostring(redis.call('HDEL', mutes, name))
end
redis.call('HSET', mutes, name, facts)
return 'ok'
