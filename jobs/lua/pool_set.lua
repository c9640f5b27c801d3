-- Changes settings of pools and tells everybody who listens.
-- Reply: the values that were there, or ''
-- #include tell
local pools = KEYS[1] -- hash: <pool>:<setting> -> JSON
local news = KEYS[2] -- stream: topics
local items = 1 -- ARGV[1..]: <pool>:<setting>, JSON or '' (not set any more)

local before, changed = {}, false
for i = 1, #ARGV / 2 do
  local field, value = ARGV[2 * i - 1], ARGV[2 * i]
  before[i] = redis.call('HGET', pools, field) or ''
  if before[i] ~= value then
    changed = true
    if value == '' then
      redis.call('HDEL', pools, field)
    else
      redis.call('HSET', pools, field, value)
    end
  end
end
if changed then
  tell(news, 'pools')
end
return before
