-- Says that a group begins to open, or that all of its members are there. Until then it does not end, even if the members
-- that are there have. Told again it changes nothing.
-- Reply: "opening", "open", or the state of the group where it does not live
-- #include node_fields
-- #include agenda
local run = KEYS[1] -- hash: facts of the run
local ranks = KEYS[2] -- hash: key of a node -> rank
local nodes = KEYS[3] -- hash: rank -> what the node is
local states = KEYS[4] -- hash: rank -> how it stands
local agenda = KEYS[5] -- zset: what is to be looked at -> in which order
local outbox = KEYS[6] -- zset: rank of a released node -> until when somebody makes its job, ms
local group = ARGV[1] -- its key
local is_whole = ARGV[2] -- '1': all members are there

local keys = { run = run, nodes = nodes, states = states, agenda = agenda }
local rank = redis.call('HGET', ranks, group)
local state = read_state(keys, rank)
local fold, left = 'fold:' .. rank, 'left:' .. group
local stage = redis.call('HGET', run, fold)
if not stage and state[CODE] ~= LIVE then
  return WORDS[state[CODE]]
end
if not stage then
  redis.call('HSET', run, fold, 'opening')
  redis.call('HINCRBY', run, left, 1)
  stage = 'opening'
end
if is_whole == '1' and stage == 'opening' then
  redis.call('HSET', run, fold, 'open')
  redis.call('HINCRBY', run, left, -1)
  redis.call('ZREM', outbox, rank)
  judge_later(keys, group, read_node(keys, rank)[DEPTH] + 1)
  stage = 'open'
end
return stage
