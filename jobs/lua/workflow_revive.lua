-- Members of a group that opens anew: those that it had before wait again, as what they are now.
-- Reply: how many there were
-- #include node_fields
-- #include agenda
-- #include move_node
local run = KEYS[1] -- hash: facts of the run
local counts = KEYS[2] -- hash: state -> how many nodes
local ranks = KEYS[3] -- hash: key of a node -> rank
local nodes = KEYS[4] -- hash: rank -> what the node is
local states = KEYS[5] -- hash: rank -> how it stands
local agenda = KEYS[6] -- zset: what is to be looked at -> in which order
local failures_of = KEYS[7] -- prefix: one zset per group of the ranks that ended dead or cancelled
local items = 1 -- ARGV[1..]: key, definition

local keys = {
  run = run,
  counts = counts,
  nodes = nodes,
  states = states,
  agenda = agenda,
  failures_of = failures_of,
}
local revived = 0
for at = items, #ARGV, 2 do
  local rank = redis.call('HGET', ranks, ARGV[at])
  local state = rank and read_state(keys, rank)
  -- Skipped and yet released: that is what was put aside.
  if state and state[CODE] == SKIPPED and state[RELEASED] == 1 then
    local node = read_node(keys, rank)
    node[DEFINITION] = ARGV[at + 1]
    state[RELEASED] = 0
    move_node(keys, rank, node, state, BLOCKED)
    write_state(keys, rank, state)
    write_node(keys, rank, node)
    look_later(keys, rank, node[DEPTH])
    revived = revived + 1
  end
end
return revived
