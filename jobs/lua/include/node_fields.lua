-- What a run holds of its nodes, each under its rank. Whoever changes one changes jobs.store.codec.runs.
-- `states` says how a node stands: AGAIN is how often its job was to live again, VERSION the newest news of it (twice the
-- resubmissions of its job, and one if that has ended), JOB the id of its job, '' while it has none. Times are server ms.
-- `nodes` says what it is: how many parents must end as it wants, how many it has, how many of those edges are laid, flags,
-- how deep it lies in groups, the key of its group ('' = the run itself), and its definition, packed.
local CODE, RELEASED, VERSION, AGAIN, RELEASED_AT, STARTED_AT, ENDED_AT, ATTEMPTS, JOB = 1, 2, 3, 4, 5, 6, 7, 8, 9
local STATE = '>BBI4I4I6I6I6I2'
local WANTED, PARENTS, LAID, FLAGS, DEPTH, SCOPE, DEFINITION = 1, 2, 3, 4, 5, 6, 7
local NODE = '>I4I4I4BBBc0'
local REFUSED = 2 -- of RELEASED: it was released, and could become nothing, since its payload could not be had
local ALWAYS, NO_JOB = 1, 2 -- of FLAGS: runs in a cancelled run too; opens into others, or waits for somebody

local BLOCKED, LIVE, SUCCEEDED, DEAD, CANCELLED, SKIPPED = 2, 3, 6, 7, 8, 9
local WORDS = { [2] = 'blocked', [3] = 'ready', [6] = 'succeeded', [7] = 'dead', [8] = 'cancelled', [9] = 'skipped' }

local function read_state(keys, rank)
  local raw = redis.call('HGET', keys.states, rank)
  if not raw then
    return nil
  end
  local state = { struct.unpack(STATE, raw) }
  state[JOB] = string.sub(raw, state[JOB])
  return state
end

local function write_state(keys, rank, state)
  redis.call('HSET', keys.states, rank, struct.pack(STATE, unpack(state, 1, ATTEMPTS)) .. state[JOB])
end

-- The length of the scope stands before it, and is the sixth value only for the one that unpacks it.
local function read_node(keys, rank)
  local raw = redis.call('HGET', keys.nodes, rank)
  local node = { struct.unpack(NODE, raw) }
  node[DEFINITION] = string.sub(raw, node[DEFINITION])
  return node
end

local function write_node(keys, rank, node)
  local head = struct.pack(NODE, node[WANTED], node[PARENTS], node[LAID], node[FLAGS], node[DEPTH], #node[SCOPE], node[SCOPE])
  redis.call('HSET', keys.nodes, rank, head .. node[DEFINITION])
end
