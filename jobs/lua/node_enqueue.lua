-- Creates the jobs of nodes of workflows, of one type, priority and delay. Their ids are fixed before, so whoever repeats the
-- step finds them; and who comes late creates nothing, since another may have, and the job be gone.
-- State: (none) -> ready | scheduled
-- Reply: now, then for each "created", "there" (a job has the id) or "late"
-- #include server_now
-- #include ready_place
-- #include due_score
-- #include wake_one
-- #include tally
local clock = KEYS[1] -- string: high-water mark of server time
local bodies = KEYS[2] -- hash: id -> body
local nodes = KEYS[3] -- hash: id of a live job -> run and node
local ready = KEYS[4] -- zset: id -> place
local scheduled = KEYS[5] -- zset: id -> due score
local live = KEYS[6] -- prefix: one hash of figures per 10 s
local sequence = KEYS[7] -- string: last place given
local wake = KEYS[8] -- list: wake token
local given_now = ARGV[1] -- ms, '' = the server's clock
local type = ARGV[2] -- job type
local priority = tonumber(ARGV[3]) -- -100..100
local delay = tonumber(ARGV[4]) -- ms from now
local not_after = tonumber(ARGV[5]) -- ms of server time
local items = 6 -- ARGV[6..]: id, run and node, body without its times

local now = server_now(clock, given_now)
local due = now + delay
local times = struct.pack('>dd', now, due)
local reply, bodies_made, nodes_made, ids = { now }, {}, {}, {}
for i = items, #ARGV, 3 do
  local id, answer = ARGV[i], 'created'
  if redis.call('HSTRLEN', bodies, id) > 0 then
    answer = 'there'
  elseif now > not_after then
    answer = 'late'
  else
    ids[#ids + 1] = id
    nodes_made[#nodes_made + 1] = id
    nodes_made[#nodes_made + 1] = ARGV[i + 1]
    bodies_made[#bodies_made + 1] = id
    bodies_made[#bodies_made + 1] = times .. ARGV[i + 2]
  end
  reply[#reply + 1] = answer
end
if not ids[1] then
  return reply
end
local places, place = {}, delay == 0 and redis.call('INCRBY', sequence, #ids) - #ids or 0
for i, id in ipairs(ids) do
  places[2 * i - 1] = delay == 0 and ready_place(priority, place + i) or due_score(due, priority)
  places[2 * i] = id
end
redis.call('HSET', nodes, unpack(nodes_made))
redis.call('HSET', bodies, unpack(bodies_made))
redis.call('ZADD', delay == 0 and ready or scheduled, unpack(places))
wake_one(wake)
tally(live, now, 'enqueued', type, #ids)
return reply
