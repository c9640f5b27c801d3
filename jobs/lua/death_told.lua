-- Notes that people have been told of all deaths before a moment.
-- Reply: "ok" or "lost" (another host has taken them over)
local control = KEYS[1] -- hash: deaths_told, deaths_by, deaths_by_until
local token = ARGV[1] -- of the host that told
local told = ARGV[2] -- ms: before it

if redis.call('HGET', control, 'deaths_by') ~= token then
  return 'lost'
end
redis.call('HSET', control, 'deaths_told', told)
redis.call('HDEL', control, 'deaths_by', 'deaths_by_until')
return 'ok'
