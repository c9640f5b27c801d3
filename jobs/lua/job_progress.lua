-- Stores how far a running job is.
-- State: leased -> leased
-- Errors: LEASE_LOST
-- #include record_fields
-- #include read_record
-- #include held_record
local states = KEYS[1] -- hash: id -> record
local progress = KEYS[2] -- hash: id -> progress
local id = ARGV[1] -- job id
local token = ARGV[2] -- the lease's token
local packed = ARGV[3] -- MessagePack: current, total, message

if not held_record(redis.call('HGET', states, id), token) then
  return redis.error_reply('LEASE_LOST ' .. 'the lease ended or is held by another worker')
end
redis.call('HSET', progress, id, packed)
return 'ok'
