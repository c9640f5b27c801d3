-- Puts parked jobs of one type back in line: a worker that may run them is here.
-- State: ready (parked) -> ready
-- Reply: how many
-- #include wake_one
local ready = KEYS[1] -- zset: id -> place
local parked = KEYS[2] -- hash: type -> parked jobs
local parked_of = KEYS[3] -- prefix of one zset per parked type
local wake = KEYS[4] -- list: wake token
local type = ARGV[1] -- job type
local limit = tonumber(ARGV[2]) -- most jobs to move
local wakes = ARGV[3] -- '1': a waiting worker is woken, whatever it may run

local line = parked_of .. type
local jobs = redis.call('ZRANGE', line, 0, limit - 1, 'WITHSCORES')
local moved = #jobs / 2
if moved > 0 then
  local places = {}
  for i = 1, moved do
    places[2 * i - 1] = jobs[2 * i]
    places[2 * i] = jobs[2 * i - 1]
  end
  redis.call('ZADD', ready, unpack(places))
  redis.call('ZREMRANGEBYRANK', line, 0, moved - 1)
  if wakes == '1' then
    wake_one(wake)
  end
end
local left = redis.call('ZCARD', line)
if left == 0 then
  redis.call('HDEL', parked, type)
else
  redis.call('HSET', parked, type, left)
end
return moved
