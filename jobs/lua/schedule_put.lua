-- Stores definitions, and states where they begin anew: those only if nobody has a claim on the schedule and its state
-- is the one that the caller saw. Forced: whatever it is.
-- Reply: 1 for each that was stored, else 0
-- #include keep_firing
local due = KEYS[1] -- zset: name -> when to look at it next (ms)
local states = KEYS[2] -- hash: name -> packed state
local definitions = KEYS[3] -- hash: name -> packed definition
local digests = KEYS[4] -- hash: name -> digest of the definition
local claims = KEYS[5] -- hash: name -> number, time of the first and token of the claim
local firings = KEYS[6] -- prefix: one zset of records per schedule, by time
local at = tonumber(ARGV[1]) -- ms, the time of the records
local kept = tonumber(ARGV[2]) -- records of one schedule
local kept_ms = tonumber(ARGV[3]) -- their age
local forced = ARGV[4] -- '1' or ''
local items = 5 -- ARGV[5..]: name, digest, definition, state seen ('' none), new state ('' stays), due ('' never), record or ''

for i = items, #ARGV, 7 do
  redis.call('ZCARD', firings .. ARGV[i])
end
local answers = {}
for i = items, #ARGV, 7 do
  local name, state, when = ARGV[i], ARGV[i + 4], ARGV[i + 5]
  local is_free = redis.call('HEXISTS', claims, name) == 0 and (redis.call('HGET', states, name) or '') == ARGV[i + 3]
  if state == '' or is_free or forced == '1' then
    redis.call('HSET', definitions, name, ARGV[i + 2])
    redis.call('HSET', digests, name, ARGV[i + 1])
    if state ~= '' then
      redis.call('HSET', states, name, state)
      redis.call('HDEL', claims, name)
      if when == '' then
        redis.call('ZREM', due, name)
      else
        redis.call('ZADD', due, when, name)
      end
    end
    if ARGV[i + 6] ~= '' then
      keep_firing(firings .. name, ARGV[i + 6], at, kept, kept_ms)
    end
    answers[#answers + 1] = 1
  else
    answers[#answers + 1] = 0
  end
end
return answers
