-- What is to be looked at in a run, in an order in which parents come first and groups before what is around them:
-- "l<rank>" a node, "t<rank>" its children, who must hear how it stands, "s<rank>" all nodes from this rank on,
-- "v<scope>" whether all of a group, or of the run, is over.
local DEEPER = 1000000000
local LAST = 900000000 -- behind all ranks of a depth

-- A script that changes much sets `keys.later`: what comes on the agenda, and what is counted, is written down together
-- before it is read.
local function new_later()
  return { pushed = {}, stale = {}, sums = {} }
end

-- `stale`: a cursor of the run that is over with it, if there is one.
local function push(keys, score, member, stale)
  local later = keys.later
  if later then
    if not later.pushed[member] then
      later.stale[#later.stale + 1] = stale
    end
    later.pushed[member] = score
    return
  end
  if stale then
    redis.call('HDEL', keys.run, stale)
  end
  redis.call('ZADD', keys.agenda, score, member)
end

local function count_up(keys, hash, field, by)
  local sums = keys.later and keys.later.sums
  if not sums then
    redis.call('HINCRBY', hash, field, by)
    return
  end
  sums[hash] = sums[hash] or {}
  sums[hash][field] = (sums[hash][field] or 0) + by
end

local function write_agenda(keys)
  local later, items = keys.later, {}
  for member, score in pairs(later.pushed) do
    items[#items + 1] = score
    items[#items + 1] = member
  end
  if later.stale[1] then
    redis.call('HDEL', keys.run, unpack(later.stale))
  end
  if items[1] then
    redis.call('ZADD', keys.agenda, unpack(items))
    later.pushed, later.stale = {}, {}
  end
end

local function write_sums(keys)
  for hash, sums in pairs(keys.later.sums) do
    for field, by in pairs(sums) do
      if by ~= 0 then
        redis.call('HINCRBY', hash, field, by)
      end
    end
  end
  keys.later.sums = {}
end

local function look_later(keys, rank, depth)
  push(keys, 2 * rank - depth * DEEPER, 'l' .. rank)
end

local function tell_later(keys, rank, depth)
  push(keys, 2 * rank + 1 - depth * DEEPER, 't' .. rank, 'told:' .. rank) -- from the first child on
end

local function sweep_later(keys, rank)
  push(keys, 2 * rank - 0.5 - 255 * DEEPER, 's' .. rank)
end

local function judge_score(depth)
  return LAST - depth * DEEPER
end

local function judge_later(keys, scope, depth)
  push(keys, judge_score(depth), 'v' .. scope, 'judged:' .. scope)
end
