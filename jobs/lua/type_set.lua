-- Changes the overrides of a job type. One that is disabled is paused with everything that is paused by hand.
-- Reply: version of what is paused, where this changed it, else 0
-- #include tell
local types = KEYS[1] -- hash: type -> JSON of its overrides
local pauses = KEYS[2] -- hash: version, disabled:<type>, and pauses
local news = KEYS[3] -- stream: topics
local type = ARGV[1] -- job type
local overrides = ARGV[2] -- JSON, '' = as declared in code
local disabled = ARGV[3] -- '1': none of it starts

local mark = 'disabled:' .. type
local was_disabled = redis.call('HEXISTS', pauses, mark) == 1
if overrides == '' then
  redis.call('HDEL', types, type)
else
  redis.call('HSET', types, type, overrides)
end
tell(news, 'types')
if was_disabled == (disabled == '1') then
  return 0
end
if disabled == '1' then
  redis.call('HSET', pauses, mark, '1')
else
  redis.call('HDEL', pauses, mark)
end
tell(news, 'pauses')
return redis.call('HINCRBY', pauses, 'version', 1)
