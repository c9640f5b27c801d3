-- Makes sure that an id whose claim is being taken over never becomes a job.
-- Reply: "voided", or "exists" where the job is there already
-- #include server_now
local clock = KEYS[1] -- string: high-water mark of server time
local bodies = KEYS[2] -- hash: id -> body
local voided = KEYS[3] -- zset: id -> when
local given_now = ARGV[1] -- ms, '' = the server's clock
local id = ARGV[2] -- job id

if redis.call('HSTRLEN', bodies, id) > 0 then
  return 'exists'
end
redis.call('ZADD', voided, server_now(clock, given_now), id)
redis.call('HSET', bodies, id, '')
return 'voided'
