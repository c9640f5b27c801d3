-- Adds a record of a job that a person had made to the history of a schedule, and the job to its state.
-- Reply: 1; 0 where the state is another by now or claimed: nothing was written
-- #include keep_firing
local states = KEYS[1] -- hash: name -> packed state
local claims = KEYS[2] -- hash: name -> number, time of the first and token of the claim
local firings = KEYS[3] -- prefix: one zset of records per schedule, by time
local name = ARGV[1] -- the schedule
local seen = ARGV[2] -- the state that it had, '' = leave it alone
local state = ARGV[3] -- its new state
local record = ARGV[4] -- what happened
local at = tonumber(ARGV[5]) -- ms, the time of the record
local kept = tonumber(ARGV[6]) -- records of one schedule
local kept_ms = tonumber(ARGV[7]) -- their age

redis.call('ZCARD', firings .. name)
if seen ~= '' then
  if redis.call('HEXISTS', claims, name) == 1 or redis.call('HGET', states, name) ~= seen then
    return 0
  end
  redis.call('HSET', states, name, state)
end
keep_firing(firings .. name, record, at, kept, kept_ms)
return 1
