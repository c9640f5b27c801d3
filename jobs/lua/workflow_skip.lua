-- Counts a node as succeeded without running it, whether it waits, is under way, was skipped or has failed. Its job, if it
-- lives, is the caller's to stop, which the run remembers until that is done: how it ends is no news any more. A group that
-- has opened ends with its members.
-- Errors: RUN_NOT_FOUND, WRONG_STATE (it has succeeded, waits for a person, or has opened; the run is being prepared or
-- cancelled)
-- Reply: the id of its job if that lives, else ''
-- #include server_now
-- #include node_fields
-- #include agenda
-- #include move_node
local clock = KEYS[1] -- string: high-water mark of server time
local run = KEYS[2] -- hash: facts of the run
local counts = KEYS[3] -- hash: state -> how many nodes
local ranks = KEYS[4] -- hash: key of a node -> rank
local nodes = KEYS[5] -- hash: rank -> what the node is
local states = KEYS[6] -- hash: rank -> how it stands
local results = KEYS[7] -- hash: rank -> JSON
local errors = KEYS[8] -- hash: rank -> JSON
local agenda = KEYS[9] -- zset: what is to be looked at -> in which order
local outbox = KEYS[10] -- zset: rank of a released node -> until when somebody makes its job, ms
local waiting = KEYS[11] -- hash: rank of a node that waits -> name of the signal, '' = for a person
local failures_of = KEYS[12] -- prefix: one zset per group of the ranks that ended dead or cancelled
local given_now = ARGV[1] -- ms, '' = the server's clock
local key = ARGV[2] -- of the node
local result = ARGV[3] -- JSON, '' = none
local note = ARGV[4] -- JSON: who skipped it and why, kept where its error would be

local keys = {
  run = run,
  counts = counts,
  nodes = nodes,
  states = states,
  agenda = agenda,
  failures_of = failures_of,
}
local facts = redis.call('HMGET', run, 'state', 'cancelled')
local rank = redis.call('HGET', ranks, key)
if not rank then
  return redis.error_reply('RUN_NOT_FOUND ' .. 'there is no such node')
end
local state = read_state(keys, rank)
local code = state[CODE]
if facts[1] == 'preparing' or facts[2] then
  return redis.error_reply('WRONG_STATE ' .. (facts[2] and 'cancelled' or 'preparing'))
elseif code == SUCCEEDED or redis.call('HEXISTS', run, 'fold:' .. rank) == 1 or redis.call('HGET', waiting, rank) == '' then
  return redis.error_reply('WRONG_STATE ' .. WORDS[code])
end

local now = server_now(clock, given_now)
local live_job = code == LIVE and state[JOB] or ''
if code == LIVE then
  local life = math.max(state[AGAIN], math.floor(state[VERSION] / 2))
  state[VERSION] = 2 * life + 1 -- as if the end of this life had been heard
end
if state[RELEASED] == 0 then
  state[RELEASED], state[RELEASED_AT] = 1, now
end
state[ENDED_AT] = now
move_node(keys, rank, read_node(keys, rank), state, SUCCEEDED)
write_state(keys, rank, state)
if live_job ~= '' then
  redis.call('HSET', run, 'stop:' .. live_job, 1)
end
redis.call('ZREM', outbox, rank)
redis.call('HDEL', waiting, rank)
redis.call('HSET', errors, rank, note)
if result == '' then
  redis.call('HDEL', results, rank)
else
  redis.call('HSET', results, rank, result)
end
return live_job
