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
-- Each void is another one: a producer may overwrite the one that it has seen, and no later one.
local before = tonumber(redis.call('ZSCORE', voided, id) or 0)
redis.call('ZADD', voided, math.max(server_now(clock, given_now), before + 1), id)
redis.call('HSET', bodies, id, '')
return 'voided'
