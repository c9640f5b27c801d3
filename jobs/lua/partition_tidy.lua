-- Drops what is bound by time or by a worker's life: old voided ids, grants of workers that are gone.
-- Reply: how many things were dropped
-- #include server_now
local clock = KEYS[1] -- string: high-water mark of server time
local voided = KEYS[2] -- zset: id -> when
local bodies = KEYS[3] -- hash: id -> body
local grants = KEYS[4] -- hash: seat of a worker -> last grant
local given_now = ARGV[1] -- ms, '' = the server's clock
local items = 2 -- ARGV[2..]: seats of workers that are gone

local KEEP_MS = 3600000

local now = server_now(clock, given_now)
local dropped = 0
for _, id in ipairs(redis.call('ZRANGEBYSCORE', voided, '-inf', string.format('%.0f', now - KEEP_MS), 'LIMIT', 0, 1000)) do
  redis.call('ZREM', voided, id)
  if redis.call('HGET', bodies, id) == '' then
    dropped = dropped + redis.call('HDEL', bodies, id)
  end
end
for i = 2, #ARGV do
  dropped = dropped + redis.call('HDEL', grants, ARGV[i])
end
return dropped
