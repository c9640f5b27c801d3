-- Says what became of nodes that were handed out: "made" (its job is there, or it waits for what is no job), or "dead" (it
-- can be no job: its payload cannot be had).
-- Reply: how many were still to be settled
-- #include server_now
-- #include node_fields
-- #include agenda
-- #include move_node
local clock = KEYS[1] -- string: high-water mark of server time
local run = KEYS[2] -- hash: facts of the run
local counts = KEYS[3] -- hash: state -> how many nodes
local nodes = KEYS[4] -- hash: rank -> what the node is
local states = KEYS[5] -- hash: rank -> how it stands
local errors = KEYS[6] -- hash: rank -> JSON
local agenda = KEYS[7] -- zset: what is to be looked at -> in which order
local outbox = KEYS[8] -- zset: rank of a released node -> until when somebody makes its job, ms
local failures_of = KEYS[9] -- prefix: one zset per group of the ranks that ended dead or cancelled
local given_now = ARGV[1] -- ms, '' = the server's clock
local items = 2 -- ARGV[2..]: rank, outcome, error JSON or ''

local keys = {
  run = run,
  counts = counts,
  nodes = nodes,
  states = states,
  agenda = agenda,
  failures_of = failures_of,
}
local now = server_now(clock, given_now)
local settled = 0
for at = items, #ARGV, 3 do
  local rank = ARGV[at]
  local was_open = redis.call('ZREM', outbox, rank)
  settled = settled + was_open
  if was_open == 1 and ARGV[at + 1] == 'dead' then
    local state = read_state(keys, rank)
    state[ENDED_AT], state[RELEASED] = now, REFUSED
    move_node(keys, rank, read_node(keys, rank), state, DEAD)
    write_state(keys, rank, state)
    redis.call('HSET', errors, rank, ARGV[at + 2])
  end
end
return settled
