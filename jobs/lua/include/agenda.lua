-- What is to be looked at in a run, in an order in which parents come first and groups before what is around them:
-- "l<rank>" a node, "t<rank>" its children, who must hear how it stands, "s<rank>" all nodes from this rank on,
-- "v<scope>" whether all of a group, or of the run, is over.
local DEEPER = 1000000000
local LAST = 900000000 -- behind all ranks of a depth
local function look_later(keys, rank, depth)
  redis.call('ZADD', keys.agenda, 2 * rank - depth * DEEPER, 'l' .. rank)
end

local function tell_later(keys, rank, depth)
  redis.call('HDEL', keys.run, 'told:' .. rank) -- from the first child on
  redis.call('ZADD', keys.agenda, 2 * rank + 1 - depth * DEEPER, 't' .. rank)
end

local function sweep_later(keys, rank)
  redis.call('ZADD', keys.agenda, 2 * rank - 0.5 - 255 * DEEPER, 's' .. rank)
end

local function judge_later(keys, scope, depth)
  redis.call('HDEL', keys.run, 'judged:' .. scope)
  redis.call('ZADD', keys.agenda, LAST - depth * DEEPER, 'v' .. scope)
end
