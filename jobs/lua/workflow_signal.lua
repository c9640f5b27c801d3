-- Keeps a signal with its run, and ends nodes that wait for it, at most `most` of them.
-- Errors: RUN_NOT_FOUND, WRONG_STATE (the run is over)
-- Reply: how many nodes were ended, how many still wait
-- #include server_now
-- #include node_fields
-- #include agenda
-- #include move_node
-- #include end_wait
local clock = KEYS[1] -- string: high-water mark of server time
local run = KEYS[2] -- hash: facts of the run
local counts = KEYS[3] -- hash: state -> how many nodes
local nodes = KEYS[4] -- hash: rank -> what the node is
local states = KEYS[5] -- hash: rank -> how it stands
local results = KEYS[6] -- hash: rank -> JSON
local errors = KEYS[7] -- hash: rank -> JSON
local agenda = KEYS[8] -- zset: what is to be looked at -> in which order
local outbox = KEYS[9] -- zset: rank of a released node -> until when somebody makes its job, ms
local failures_of = KEYS[10] -- prefix: one zset per group of the ranks that ended dead or cancelled
local signals = KEYS[11] -- hash: name of a signal that came -> payload JSON
local waiting = KEYS[12] -- hash: rank of a node that waits -> name of the signal, '' = for a person
local given_now = ARGV[1] -- ms, '' = the server's clock
local name = ARGV[2] -- of the signal
local payload = ARGV[3] -- JSON
local most = tonumber(ARGV[4]) -- nodes to end in this call

local keys = {
  run = run,
  counts = counts,
  nodes = nodes,
  states = states,
  results = results,
  errors = errors,
  agenda = agenda,
  outbox = outbox,
  waiting = waiting,
  failures_of = failures_of,
}
local state = redis.call('HGET', run, 'state')
if not state then
  return redis.error_reply('RUN_NOT_FOUND ' .. 'there is no such run')
elseif state ~= 'running' and state ~= 'preparing' then
  return redis.error_reply('WRONG_STATE ' .. state)
end
local now = server_now(clock, given_now)
redis.call('HSET', signals, name, payload)
local ended, left = 0, 0
local all = redis.call('HGETALL', waiting)
for i = 1, #all, 2 do
  if all[i + 1] == name and ended == most then
    left = left + 1
  elseif all[i + 1] == name and end_wait(keys, all[i], now, SUCCEEDED, payload, '') == 'ended' then
    ended = ended + 1
  end
end
return { ended, left }
