-- Hands the deaths that nobody was told of yet to one host, for a while. Those of the present millisecond wait for the next
-- call: more may come with it.
-- Reply: up to when these are all (ms, '' = there will be some in a moment), then the ids; nothing where there are none or
-- another host has them
-- #include server_now
local clock = KEYS[1] -- string: high-water mark of server time
local control = KEYS[2] -- hash: deaths_told, deaths_by, deaths_by_until
local dead = KEYS[3] -- zset: id -> end
local given_now = ARGV[1] -- ms, '' = the server's clock
local token = ARGV[2] -- of the host that asks
local claim = tonumber(ARGV[3]) -- ms for which the deaths are its
local limit = tonumber(ARGV[4]) -- about as many at once
local oldest = tonumber(ARGV[5]) -- ms: deaths that are older are nobody's news
local begun = ARGV[6] -- ms: since when the host is there to tell; where nobody ever was, deaths before are no news either

local now = server_now(clock, given_now)
local facts = redis.call('HMGET', control, 'deaths_told', 'deaths_by', 'deaths_by_until')
if not facts[1] then
  redis.call('HSET', control, 'deaths_told', begun)
end
if facts[2] and facts[2] ~= token and tonumber(facts[3]) > now then
  return {}
end
local since = string.format('%.0f', math.max(tonumber(facts[1] or begun), now - oldest))
local before = string.format('(%.0f', now)
local deaths = redis.call('ZRANGEBYSCORE', dead, since, before, 'WITHSCORES', 'LIMIT', 0, limit)
if not deaths[1] then
  return redis.call('ZCOUNT', dead, string.format('%.0f', now), '+inf') > 0 and { '' } or {}
end
local last = deaths[#deaths]
redis.call('HSET', control, 'deaths_by', token, 'deaths_by_until', string.format('%.0f', now + claim))
local reply = { string.format('%.0f', tonumber(last) + 1) }
-- All of the last millisecond, however many: only then can the next call begin after it.
for _, id in ipairs(redis.call('ZRANGEBYSCORE', dead, since, last)) do
  reply[#reply + 1] = id
end
return reply
