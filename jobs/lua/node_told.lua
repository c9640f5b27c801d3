-- The runs of these nodes have heard how their jobs stand. What has changed since stays to be told.
-- Reply: how many entries are gone
-- #include record_fields
-- #include read_record
local nodes = KEYS[1] -- hash: id of a live job -> run and node
local outbox = KEYS[2] -- hash: id -> record that its run has not heard of
local items = 1 -- ARGV[1..]: id, record that was told

local IS_OVER = { succeeded = true, dead = true, cancelled = true, skipped = true }
local gone = 0
for i = 1, #ARGV, 2 do
  local id, told = ARGV[i], ARGV[i + 1]
  if redis.call('HGET', outbox, id) == told then
    redis.call('HDEL', outbox, id)
    local record = read_record(told, '')
    if not record or IS_OVER[record[STATE]] then
      redis.call('HDEL', nodes, id)
    end
    gone = gone + 1
  end
end
return gone
