-- Moves schedules on that the caller has taken: only while its claim stands and the state is the one that it was given.
-- Reply: 1 or 0 for each
-- #include keep_firing
local due = KEYS[1] -- zset: name -> when to look at it next (ms)
local states = KEYS[2] -- hash: name -> packed state
local claims = KEYS[3] -- hash: name -> number, time of the first and token of the claim
local control = KEYS[4] -- hash: sequence, fired_until
local firings = KEYS[5] -- prefix: one zset of records per schedule, by time
local token = ARGV[1] -- the claim's
local at = tonumber(ARGV[2]) -- ms, the time of the records
local kept = tonumber(ARGV[3]) -- records of one schedule
local kept_ms = tonumber(ARGV[4]) -- their age
local fired_until = tonumber(ARGV[5]) -- the latest nominal time that is dealt with
local items = 6 -- ARGV[6..]: name, state it had, new state, due (ms, '' never, '-' the claim stays), record or '',
-- the record that it replaces or ''

local answers = {}
for i = items, #ARGV, 6 do
  local name = ARGV[i]
  redis.call('ZCARD', firings .. name)
  local holder = string.match(redis.call('HGET', claims, name) or '', '^%d+:%d+:(.*)$')
  answers[#answers + 1] = (holder == token and redis.call('HGET', states, name) == ARGV[i + 1]) and 1 or 0
end

local moved = 0
for position, answer in ipairs(answers) do
  if answer == 1 then
    local i = items + 6 * (position - 1)
    local name, when, record = ARGV[i], ARGV[i + 3], ARGV[i + 4]
    redis.call('HSET', states, name, ARGV[i + 2])
    if when == '' then
      redis.call('ZREM', due, name)
    elseif when ~= '-' then
      redis.call('ZADD', due, when, name)
    end
    if when ~= '-' then
      redis.call('HDEL', claims, name)
    end
    if ARGV[i + 5] ~= '' then
      redis.call('ZREM', firings .. name, ARGV[i + 5])
    end
    if record ~= '' then
      keep_firing(firings .. name, record, at, kept, kept_ms)
    end
    moved = moved + 1
  end
end
if moved > 0 then
  redis.call('HINCRBY', control, 'sequence', moved)
  if fired_until > tonumber(redis.call('HGET', control, 'fired_until') or 0) then
    redis.call('HSET', control, 'fired_until', string.format('%d', fired_until))
  end
end
return answers
