-- Ends one node that waits for a signal or a person.
-- Errors: RUN_NOT_FOUND, WRONG_STATE (it does not wait)
-- Reply: the state that it is in now
-- #include server_now
-- #include node_fields
-- #include agenda
-- #include move_node
-- #include end_wait
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
local is_good = ARGV[3] -- '1': it succeeded; '': it is dead
local result = ARGV[4] -- JSON, '' = none
local problem = ARGV[5] -- JSON of an error, '' = none

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
local rank = redis.call('HGET', ranks, key)
if not rank then
  return redis.error_reply('RUN_NOT_FOUND ' .. 'there is no such node')
end
local what = end_wait(keys, rank, server_now(clock, given_now), is_good == '1' and SUCCEEDED or DEAD, result, problem)
if what ~= 'ended' then
  return redis.error_reply('WRONG_STATE ' .. what)
end
return is_good == '1' and 'succeeded' or 'dead'
