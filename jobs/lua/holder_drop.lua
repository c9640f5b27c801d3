-- Gives a name free, if it is still held by the holder that is expected.
-- Reply: 1 or 0
local holders = KEYS[1] -- hash: name -> holder
local name = ARGV[1] -- what was claimed
local expected = ARGV[2] -- who held it

if redis.call('HGET', holders, name) == expected then
  return redis.call('HDEL', holders, name)
end
return 0
