-- Gives one host at a time the right to do what only one may do, or renews it. Its token is the fence: every write of the
-- service compares it.
-- Reply: the token, or '' while somebody else has the right; who has it; until when, ms
local services = KEYS[1] -- hash: service -> packed holder, token, until when
local given_now = ARGV[1] -- ms, '' = the server's clock
local service = ARGV[2] -- its name
local holder = ARGV[3] -- host that asks
local token = ARGV[4] -- made by it, for a right that it does not have yet
local ttl = tonumber(ARGV[5]) -- ms

local now = tonumber(given_now)
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local ok, held = pcall(cmsgpack.unpack, redis.call('HGET', services, service) or '')
local is_held = ok and type(held) == 'table' and tonumber(held[3]) and held[3] > now
-- A right that reaches further than any is from before the clock was set back.
if is_held and held[3] - now <= ttl then
  if held[1] ~= holder then
    return { '', held[1], held[3] }
  end
  token = held[2]
end
redis.call('HSET', services, service, cmsgpack.pack({ holder, token, now + ttl }))
return { token, holder, now + ttl }
