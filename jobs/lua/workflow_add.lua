-- Adds nodes to a run, and lays edges from parents that are there. A node with many parents comes in several calls, each
-- with the next of its edges. What is there already is left as it is, so the same calls may be made again.
-- Errors: RUN_NOT_FOUND, RUN_CANCELLED, TOO_MANY_NODES, UNKNOWN_PARENT (nothing was added)
-- Reply: how many nodes are new
-- #include node_fields
-- #include agenda
local run = KEYS[1] -- hash: facts of the run
local counts = KEYS[2] -- hash: state -> how many nodes
local ranks = KEYS[3] -- hash: key of a node -> rank
local nodes = KEYS[4] -- hash: rank -> what the node is
local states = KEYS[5] -- hash: rank -> how it stands
local edges = KEYS[6] -- hash: kind of edge and rank of the parent -> ranks of children, 4 bytes each
local agenda = KEYS[7] -- zset: what is to be looked at -> in which order
local held_of = KEYS[8] -- prefix: one set per node of the parents that ended as it wants
local broken_of = KEYS[9] -- prefix: one set per node of the parents that ended otherwise
local most_nodes = tonumber(ARGV[1]) -- nodes that a run may have
local coming = tonumber(ARGV[2]) -- nodes that other calls will add after this one: all of them, or none
local items = 3 -- ARGV[3..]: key, wanted, parents, flags, depth, scope, definition, number of the first edge, count of edges, then kind ("s", "f" or "c") and key of the parent for each

local keys = { run = run, counts = counts, nodes = nodes, states = states, agenda = agenda }
local facts = redis.call('HMGET', run, 'state', 'total', 'cancelled')
local run_state, total = facts[1], tonumber(facts[2])
if not run_state then
  return redis.error_reply('RUN_NOT_FOUND ' .. 'there is no such run')
end

-- Who is to be added under which rank; nothing is written before all is known.
local rank_of, added, at, next_rank = {}, {}, items, total
while at <= #ARGV do
  local key, count = ARGV[at], tonumber(ARGV[at + 8])
  local rank = rank_of[key] or tonumber(redis.call('HGET', ranks, key) or nil)
  local is_new = not rank
  if is_new then
    rank, next_rank = next_rank, next_rank + 1
  end
  rank_of[key] = rank
  local item = { key = key, rank = rank, is_new = is_new, at = at, parents = {} }
  for i = 1, count do
    local parent = ARGV[at + 8 + 2 * i]
    local parent_rank = rank_of[parent] or tonumber(redis.call('HGET', ranks, parent) or nil)
    if not parent_rank or parent_rank >= rank then
      return redis.error_reply('UNKNOWN_PARENT ' .. key .. ' waits for ' .. parent)
    end
    rank_of[parent], item.parents[i] = parent_rank, parent_rank
  end
  added[#added + 1] = item
  at = at + 9 + 2 * count
end
if next_rank > total then
  if facts[3] then
    return redis.error_reply('RUN_CANCELLED ' .. 'the run is being cancelled')
  elseif next_rank + coming > most_nodes then
    return redis.error_reply('TOO_MANY_NODES ' .. 'the run would have ' .. next_rank + coming)
  end
end

-- Whether the node that is there under this key is the one that is given: another stays as it is, with its own edges.
local function is_same(item, node)
  local definition, first = ARGV[item.at + 6], tonumber(ARGV[item.at + 7])
  return node[WANTED] == tonumber(ARGV[item.at + 1])
    and node[PARENTS] == tonumber(ARGV[item.at + 2])
    and (first > 0 or node[DEFINITION] == definition)
end

local function lay(item, node)
  local first, laid = tonumber(ARGV[item.at + 7]), node[LAID]
  if first > laid or not is_same(item, node) then
    return
  end
  for i = laid - first + 1, #item.parents do
    local kind, parent = ARGV[item.at + 7 + 2 * i], item.parents[i]
    local field = kind .. parent
    redis.call('HSET', edges, field, (redis.call('HGET', edges, field) or '') .. struct.pack('>I4', item.rank))
    local code = read_state(keys, parent)[CODE]
    if code >= SUCCEEDED then
      local holds = kind == 'c' or (kind == 's' and code == SUCCEEDED) or (kind == 'f' and (code == DEAD or code == CANCELLED))
      redis.call('SADD', (holds and held_of or broken_of) .. item.rank, parent)
    end
    laid = i + first
  end
  node[LAID] = laid
end

for _, item in ipairs(added) do
  local node
  if item.is_new then
    node = {}
    for field, offset in pairs({ [WANTED] = 1, [PARENTS] = 2, [FLAGS] = 3, [DEPTH] = 4 }) do
      node[field] = tonumber(ARGV[item.at + offset])
    end
    node[LAID], node[SCOPE], node[DEFINITION] = 0, ARGV[item.at + 5], ARGV[item.at + 6]
    redis.call('HSET', ranks, item.key, item.rank)
    write_state(keys, item.rank, { BLOCKED, 0, 0, 0, 0, 0, 0, 0, '' })
    redis.call('HINCRBY', counts, WORDS[BLOCKED], 1)
    redis.call('HINCRBY', run, 'left:' .. node[SCOPE], 1)
  else
    node = read_node(keys, item.rank)
  end
  lay(item, node)
  write_node(keys, item.rank, node)
  if run_state ~= 'preparing' or node[PARENTS] == 0 then
    look_later(keys, item.rank, node[DEPTH])
    judge_later(keys, node[SCOPE], node[DEPTH])
  end
end
redis.call('HSET', run, 'total', next_rank)
return next_rank - total
