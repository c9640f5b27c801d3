-- Brings a pool into being, if its partitions were told of what is paused now: a pool is never born into a pause that it
-- does not know of. Says which format is written from now on, if it is a newer one.
-- Reply: version of what is paused; where it is not the one seen, nothing was done
-- #include tell
local topology = KEYS[1] -- hash: pool -> its versions
local pauses = KEYS[2] -- hash: version and pauses
local news = KEYS[3] -- stream: what was changed
local format = KEYS[4] -- string: newest format that was written
local pool = ARGV[1] -- its name
local versions = ARGV[2] -- JSON: version -> partitions
local seen = tonumber(ARGV[3]) -- version that its partitions were told of
local written = tonumber(ARGV[4]) -- format that the caller writes

local version = tonumber(redis.call('HGET', pauses, 'version') or 0)
local newest = tonumber(redis.call('GET', format) or nil) or 0
local is_new = version == seen and redis.call('HSETNX', topology, pool, versions) == 1
if written > newest then
  redis.call('SET', format, written)
end
if is_new or written > newest then
  tell(news, 'topology') -- older code looks again at once, and stops
end
return version
