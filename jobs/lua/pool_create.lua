-- Brings a pool into being, if its partitions were told of what is paused now: a pool is never born into a pause that it
-- does not know of.
-- Reply: version of what is paused; where it is not the one seen, nothing was done
-- #include tell
local topology = KEYS[1] -- hash: pool -> its versions
local pauses = KEYS[2] -- hash: version and pauses
local news = KEYS[3] -- stream: what was changed
local pool = ARGV[1] -- its name
local versions = ARGV[2] -- JSON: version -> partitions
local seen = tonumber(ARGV[3]) -- version that its partitions were told of

local version = tonumber(redis.call('HGET', pauses, 'version') or 0)
if version == seen and redis.call('HSETNX', topology, pool, versions) == 1 then
  tell(news, 'topology')
end
return version
