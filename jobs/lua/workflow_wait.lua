-- A released node begins to wait for a signal or for a person. A signal that came before ends it at once.
-- Reply: "waits", or the state of the node where it does not
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
local rank = ARGV[2] -- of the node
local name = ARGV[3] -- of the signal, '' = it waits for a person

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
local payload = name ~= '' and redis.call('HGET', signals, name)
if payload then
  end_wait(keys, rank, server_now(clock, given_now), SUCCEEDED, payload, '')
end
local state = read_state(keys, rank)
if state[CODE] ~= LIVE then
  return WORDS[state[CODE]]
end
redis.call('HSET', waiting, rank, name)
redis.call('ZREM', outbox, rank)
return 'waits'
