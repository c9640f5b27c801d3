-- Claims a name, or takes it over from the holder that is expected.
-- Brings work.
-- Reply: "1" and the value where it is ours now, "0" and the holder where it is not
local holders = KEYS[1] -- hash: name -> holder
local name = ARGV[1] -- what is claimed
local value = ARGV[2] -- who claims it
local expected = ARGV[3] -- the holder to replace, '' = none

local holder = redis.call('HGET', holders, name)
if (holder or '') ~= expected and holder ~= value then
  return { '0', holder or '' }
end
redis.call('HSET', holders, name, value)
return { '1', value }
