-- Creates the jobs of firings, of one type and priority. Their ids are known before and made by nobody else, so whoever
-- repeats a firing finds its job; and who comes late creates nothing, since another may have fired, and the job be gone.
-- State: (none) -> ready
-- Brings work.
-- Reply: now, then for each "created", "there" (a job has the id), "late" or "full" (as many jobs wait as may)
-- #include server_now
-- #include ready_place
-- #include wake_one
-- #include tally
local clock = KEYS[1] -- string: high-water mark of server time
local bodies = KEYS[2] -- hash: id -> body
local ready = KEYS[3] -- zset: id -> place
local live = KEYS[4] -- prefix: one hash of figures per 10 s
local sequence = KEYS[5] -- string: last place given
local wake = KEYS[6] -- list: wake token
local lines = KEYS[7] -- prefix: one zset per state, and the hash of parked jobs
local given_now = ARGV[1] -- ms, '' = the server's clock
local type = ARGV[2] -- job type
local priority = tonumber(ARGV[3]) -- -100..100
local not_after = tonumber(ARGV[4]) -- ms of server time
local max_pending = tonumber(ARGV[5]) -- most jobs that may wait here after this, '' = any number
local items = 6 -- ARGV[6..]: id, body without its times

local now = server_now(clock, given_now)
local times = struct.pack('>dd', now, now)
local reply, bodies_made, places = { now }, {}, {}
local room = math.huge
if max_pending then
  room = max_pending
  for _, line in ipairs({ 'ready', 'throttled', 'scheduled', 'retry_wait' }) do
    room = room - redis.call('ZCARD', lines .. line)
  end
  for _, number in ipairs(redis.call('HVALS', lines .. 'parked')) do
    room = room - (tonumber(number) or 0)
  end
end
for i = items, #ARGV, 2 do
  local answer = 'created'
  if redis.call('HSTRLEN', bodies, ARGV[i]) > 0 then
    answer = 'there'
  elseif now > not_after then
    answer = 'late'
  elseif room < 1 then
    answer = 'full'
  else
    room = room - 1
    bodies_made[#bodies_made + 1] = ARGV[i]
    bodies_made[#bodies_made + 1] = times .. ARGV[i + 1]
  end
  reply[#reply + 1] = answer
end
local created = #bodies_made / 2
if created == 0 then
  return reply
end
local place = redis.call('INCRBY', sequence, created) - created
for i = 1, created do
  places[2 * i - 1] = ready_place(priority, place + i)
  places[2 * i] = bodies_made[2 * i - 1]
end
redis.call('HSET', bodies, unpack(bodies_made))
redis.call('ZADD', ready, unpack(places))
wake_one(wake)
tally(live, now, 'enqueued', type, created)
return reply
