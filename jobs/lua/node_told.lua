-- The runs of these nodes have heard how their jobs stand. What has changed since stays to be told.
-- Reply: how many entries are gone
-- #include record_fields
-- #include read_record
local nodes = KEYS[1] -- hash: id of a live job -> run and node
local outbox = KEYS[2] -- hash: id -> record that its run has not heard of
local items = 1 -- ARGV[1..]: id, record that was told

local IS_OVER = { succeeded = true, dead = true, cancelled = true, skipped = true }
local ids, told, over = {}, {}, {}
for i = 1, #ARGV, 2 do
  ids[#ids + 1] = ARGV[i]
end
for i, stored in ipairs(ids[1] and redis.call('HMGET', outbox, unpack(ids)) or {}) do
  if stored == ARGV[2 * i] then
    told[#told + 1] = ids[i]
    local record = read_record(stored, '')
    if not record or IS_OVER[record[STATE]] then
      over[#over + 1] = ids[i]
    end
  end
end
if told[1] then
  redis.call('HDEL', outbox, unpack(told))
end
if over[1] then
  redis.call('HDEL', nodes, unpack(over))
end
return #told
