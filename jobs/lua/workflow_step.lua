-- Goes on with a run: writes down what is new of its nodes, works off what follows, as far as `limit` goes, and hands out
-- nodes that are to become jobs. Whoever makes the call again finds what is left; news that were told change nothing.
-- Errors: RUN_NOT_FOUND
-- Reply: now, state of the run, things left on the agenda, nodes that others were handed, how many news were new, '1' if the
-- run's state has changed, then for each node that is handed out: rank, how it stands, what it is
-- #include server_now
-- #include node_fields
-- #include agenda
-- #include move_node
local clock = KEYS[1] -- string: high-water mark of server time
local run = KEYS[2] -- hash: facts of the run
local counts = KEYS[3] -- hash: state -> how many nodes
local ranks = KEYS[4] -- hash: key of a node -> rank
local nodes = KEYS[5] -- hash: rank -> what the node is
local states = KEYS[6] -- hash: rank -> how it stands
local edges = KEYS[7] -- hash: kind of edge and rank of the parent -> ranks of children, 4 bytes each
local results = KEYS[8] -- hash: rank -> JSON
local errors = KEYS[9] -- hash: rank -> JSON
local agenda = KEYS[10] -- zset: what is to be looked at -> in which order
local outbox = KEYS[11] -- zset: rank of a released node -> until when somebody makes its job, ms
local held_of = KEYS[12] -- prefix: one set per node of the parents that ended as it wants
local broken_of = KEYS[13] -- prefix: one set per node of the parents that ended otherwise
local failures_of = KEYS[14] -- prefix: one zset per group of the ranks that ended dead or cancelled
local waiting = KEYS[15] -- hash: rank of a node that waits -> name of the signal, '' = for a person
local given_now = ARGV[1] -- ms, '' = the server's clock
local limit = tonumber(ARGV[2]) -- most looks at nodes and tellings of children
local take = tonumber(ARGV[3]) -- most nodes to hand out
local claim_ms = tonumber(ARGV[4]) -- for how long they are handed out
local items = 5 -- ARGV[5..]: key, id of the job ('' = it has none), version, state, started_at, ended_at (ms), attempts, result JSON or '', error JSON or ''

local ENOUGH_BYTES = 1000000 -- of definitions that are handed out
local CODES = { succeeded = SUCCEEDED, dead = DEAD, cancelled = CANCELLED, skipped = SKIPPED }

local keys = {
  run = run,
  counts = counts,
  nodes = nodes,
  states = states,
  agenda = agenda,
  failures_of = failures_of,
  later = new_later(),
}
local facts = redis.call('HMGET', run, 'state', 'cancelled', 'paused', 'redo', 'cuts')
local run_state, is_cancelled, is_paused = facts[1], facts[2], facts[3]
local stands_still = run_state == 'preparing' or facts[4] -- nodes are being written down, or a retry is
if not run_state then
  return redis.error_reply('RUN_NOT_FOUND ' .. 'there is no such run')
end
local now = server_now(clock, given_now)
local has_changed = false

-- Of a cancelled run, or of a group whose time is over, nothing starts any more that is not marked so.
local cuts = facts[5] and cmsgpack.unpack(facts[5]) or {}
local function is_given_up(node)
  return (is_cancelled or cuts[node[SCOPE]]) and node[FLAGS] % 2 ~= ALWAYS
end

-- News --------------------------------------------------------------------------------------------------------------------

-- Of a node whose job ends for the first time nothing is there yet.
local function keep(hash, rank, value, version)
  if value == '' and version > 1 then
    redis.call('HDEL', hash, rank)
  elseif value ~= '' then
    redis.call('HSET', hash, rank, value)
  end
end

local function note(at, rank)
  local state = rank and read_state(keys, rank)
  local version = tonumber(ARGV[at + 2])
  if not state or state[RELEASED] == 0 or state[JOB] ~= ARGV[at + 1] or version <= state[VERSION] then
    return 0
  end
  state[VERSION] = version
  state[STARTED_AT], state[ENDED_AT], state[ATTEMPTS] = tonumber(ARGV[at + 4]), tonumber(ARGV[at + 5]), tonumber(ARGV[at + 6])
  move_node(keys, rank, read_node(keys, rank), state, CODES[ARGV[at + 3]] or LIVE)
  write_state(keys, rank, state)
  keep(results, rank, ARGV[at + 7], version)
  keep(errors, rank, ARGV[at + 8], version)
  return 1
end

local told_of, known = {}, {}
for at = items, #ARGV, 9 do
  told_of[#told_of + 1] = ARGV[at]
end
local rank_of = told_of[1] and redis.call('HMGET', ranks, unpack(told_of)) or {}
local fresh = 0
for position, rank in ipairs(rank_of) do
  if rank and note(items + 9 * (position - 1), rank) == 1 then
    fresh = fresh + 1
    known[fresh] = rank
  end
end
if known[1] then
  redis.call('ZREM', outbox, unpack(known)) -- they are jobs, whoever was about to make them
end

-- What follows ------------------------------------------------------------------------------------------------------------

-- What children have heard of their parents in this call, the last word of each, until it is written down.
local heard = {}

local function write_heard(child)
  local words = { held = {}, broken = {}, open = {} }
  for parent, word in pairs(heard[child] or {}) do
    words[word][#words[word] + 1] = parent
  end
  heard[child] = nil
  local function write(verb, set, parents)
    if parents[1] then
      redis.call(verb, set .. child, unpack(parents))
    end
  end
  write('SREM', broken_of, words.held)
  write('SADD', held_of, words.held)
  write('SREM', held_of, words.broken)
  write('SADD', broken_of, words.broken)
  write('SREM', held_of, words.open)
  write('SREM', broken_of, words.open)
end

-- Of a node that is no job yet: LIVE = it may run, an end = it never will, BLOCKED = it waits.
local function fate(rank, node, state)
  if is_given_up(node) then
    return state[CODE] >= SUCCEEDED and state[CODE] or CANCELLED
  end
  if heard[rank] then
    write_heard(rank)
  end
  if redis.call('SCARD', held_of .. rank) >= node[WANTED] then
    return LIVE
  end
  if node[PARENTS] - redis.call('SCARD', broken_of .. rank) < node[WANTED] then
    return SKIPPED
  end
  return BLOCKED
end

-- What was released and has not begun, where nothing starts any more. A group that has, ends with its members.
local function give_up(rank, state)
  local node = read_node(keys, rank)
  local has_job = math.floor(node[FLAGS] / NO_JOB) % 2 == 0
  if not is_given_up(node) or (has_job and state[JOB] ~= '') or redis.call('HEXISTS', run, 'fold:' .. rank) == 1 then
    return
  end
  state[ENDED_AT] = now
  move_node(keys, rank, node, state, CANCELLED)
  write_state(keys, rank, state)
  redis.call('ZREM', outbox, rank)
  redis.call('HDEL', waiting, rank)
end

local function look(rank)
  local state = read_state(keys, rank)
  if not state or state[RELEASED] > 0 then
    if state and (is_cancelled or facts[5]) and state[CODE] == LIVE then
      give_up(rank, state)
    end
    return
  end
  local node = read_node(keys, rank)
  local code = fate(rank, node, state)
  if not move_node(keys, rank, node, state, code) then
    return
  end
  state[ENDED_AT] = code >= SUCCEEDED and now or 0
  if code == LIVE then
    state[RELEASED], state[RELEASED_AT] = 1, now
    redis.call('ZADD', outbox, 0, rank)
  end
  write_state(keys, rank, state)
end

-- What the end of a parent is to those that wait for it: true, false, or nil where it has not ended.
local function holds(kind, code)
  if code < SUCCEEDED then
    return nil
  end
  return kind == 'c' or (kind == 's' and code == SUCCEEDED) or (kind == 'f' and (code == DEAD or code == CANCELLED))
end

local function tell_child(child, parent, verdict)
  child = tostring(child)
  heard[child] = heard[child] or {}
  heard[child][parent] = verdict == nil and 'open' or verdict and 'held' or 'broken'
end

-- A node that could become nothing, perhaps because of a parent that has lived again since, waits again.
local function take_back_refusal(rank)
  local state = read_state(keys, rank)
  local node = state[RELEASED] == REFUSED and state[CODE] == DEAD and read_node(keys, rank)
  if node and not is_given_up(node) then
    state[RELEASED], state[RELEASED_AT], state[ENDED_AT] = 0, 0, 0
    move_node(keys, rank, node, state, BLOCKED)
    write_state(keys, rank, state)
    redis.call('HDEL', errors, rank)
  end
end

-- Tells the next children, at most `most` of them; returns how many.
local function tell(rank, most)
  local state, depth = read_state(keys, rank), read_node(keys, rank)[DEPTH]
  local code = state[CODE]
  local has_lived_again = code < SUCCEEDED or state[VERSION] > 1
  local cursor = redis.call('HGET', run, 'told:' .. rank)
  local skip, told = tonumber(cursor or 0), 0
  local seen = 0
  local children_of = redis.call('HMGET', edges, 's' .. rank, 'f' .. rank, 'c' .. rank)
  for position, kind in ipairs({ 's', 'f', 'c' }) do
    local children = children_of[position] or ''
    local count = #children / 4
    local verdict = holds(kind, code)
    for i = math.max(1, skip - seen + 1), count do
      if told == most then
        redis.call('HSET', run, 'told:' .. rank, skip + told)
        redis.call('ZADD', agenda, 2 * tonumber(rank) + 1 - depth * DEEPER, 't' .. rank)
        return told
      end
      local child = struct.unpack('>I4', children, 4 * i - 3)
      tell_child(child, rank, verdict)
      if has_lived_again then
        take_back_refusal(child)
      end
      look_later(keys, child, depth)
      told = told + 1
    end
    seen = seen + count
  end
  if cursor then
    redis.call('HDEL', run, 'told:' .. rank)
  end
  return told
end

-- Puts the next of all nodes on the agenda, at most `most` of them.
local function sweep(rank, most)
  local total = tonumber(redis.call('HGET', run, 'total'))
  local last = math.min(total, rank + most)
  for next_rank = rank, last - 1 do
    look_later(keys, next_rank, read_node(keys, next_rank)[DEPTH])
  end
  if last < total then
    sweep_later(keys, last)
  end
  return last - rank
end

-- Whether somebody was asked to deal with the end of this node: true, false, or nil where `most` children, behind the
-- first `skip`, did not tell. And how many were looked at.
local function is_covered(rank, skip, most)
  local seen, looked = 0, 0
  for _, kind in ipairs({ 'f', 'c' }) do
    local children = redis.call('HGET', edges, kind .. rank) or ''
    local count = #children / 4
    for i = math.max(1, skip - seen + 1), count do
      if looked == most then
        return nil, looked
      end
      looked = looked + 1
      if read_state(keys, struct.unpack('>I4', children, 4 * i - 3))[RELEASED] > 0 then
        return true, looked
      end
    end
    seen = seen + count
  end
  return false, looked
end

local function close(scope, outcome)
  if scope ~= '' then
    local rank = redis.call('HGET', ranks, scope)
    local state = read_state(keys, rank)
    if move_node(keys, rank, read_node(keys, rank), state, outcome) then
      state[ENDED_AT] = outcome >= SUCCEEDED and now or 0
      write_state(keys, rank, state)
      if outcome == SUCCEEDED then
        redis.call('HDEL', errors, rank) -- its time was over when all was done
      end
    end
    return
  end
  local word = outcome == DEAD and 'failed' or WORDS[outcome]
  if outcome == LIVE then
    word = 'running'
  end
  if word ~= run_state then
    redis.call('HSET', run, 'state', word, 'finished_at', outcome == LIVE and '' or now)
    if outcome == LIVE then
      redis.call('HINCRBY', run, 'lives', 1)
    elseif redis.call('HDEL', run, 'paused') == 1 then
      redis.call('HINCRBY', run, 'halts', 1)
    end
    run_state, has_changed = word, true
  end
end

local function depth_of(scope)
  return scope == '' and 0 or read_node(keys, redis.call('HGET', ranks, scope))[DEPTH] + 1
end

-- How a group, or the run, stands; failures that are covered by nobody are looked for as far as `most` looks go.
local function judge(scope, most)
  local group = scope ~= '' and redis.call('HGET', ranks, scope)
  local fold = group and redis.call('HGET', run, 'fold:' .. group)
  if group and (not fold or (fold == 'opening' and read_state(keys, group)[CODE] ~= LIVE)) then
    return 1 -- it will open anew, or could not: what it opened into before says nothing
  end
  write_sums(keys)
  if tonumber(redis.call('HGET', run, 'left:' .. scope) or 0) > 0 then
    close(scope, LIVE)
    return 1
  end
  if is_cancelled and scope == '' then
    close(scope, CANCELLED)
    return 1
  end
  local judged = redis.call('HGET', run, 'judged:' .. scope) or '0 0 ' .. SUCCEEDED
  local cursor, skip, outcome = string.match(judged, '^(%d+) (%d+) (%d+)$')
  cursor, skip, outcome = tonumber(cursor), tonumber(skip), tonumber(outcome)
  local looks, rank = 0, nil
  while looks < most and outcome ~= DEAD do
    rank = redis.call('ZRANGE', failures_of .. scope, cursor, cursor)[1]
    if not rank then
      break
    end
    local covered, looked = is_covered(rank, skip, most - looks)
    looks = looks + looked + 1
    if covered == nil then
      skip = skip + looked
    else
      cursor, skip = cursor + 1, 0
    end
    if covered == false then
      outcome = read_state(keys, rank)[CODE] == DEAD and DEAD or CANCELLED
    end
  end
  if rank and outcome ~= DEAD then
    push(keys, judge_score(depth_of(scope)), 'v' .. scope)
    redis.call('HSET', run, 'judged:' .. scope, cursor .. ' ' .. skip .. ' ' .. outcome)
  else
    redis.call('HDEL', run, 'judged:' .. scope)
    close(scope, outcome)
  end
  return looks + 1
end

local left = stands_still and 0 or limit
while left > 0 do
  write_agenda(keys)
  local member = redis.call('ZPOPMIN', agenda)[1]
  if not member then
    break
  end
  local kind, rest = string.sub(member, 1, 1), string.sub(member, 2)
  if kind == 'l' then
    look(rest)
    left = left - 1
  elseif kind == 't' then
    left = left - 1 - tell(rest, left)
  elseif kind == 's' then
    left = left - 1 - sweep(tonumber(rest), left)
  else
    left = left - judge(rest, left)
  end
end

write_agenda(keys)
write_sums(keys)
for child in pairs(heard) do
  write_heard(child)
end

-- What is handed out ------------------------------------------------------------------------------------------------------

local now_text = string.format('%.0f', now)
local claimed = redis.call('ZCOUNT', outbox, '(' .. now_text, '+inf')
local reply = { now, run_state, stands_still and 0 or redis.call('ZCARD', agenda), claimed, fresh, has_changed and '1' or '' }
if take > 0 and not is_paused and not stands_still then
  local bytes = 0
  for _, rank in ipairs(redis.call('ZRANGEBYSCORE', outbox, '-inf', now_text, 'LIMIT', 0, take)) do
    local node = redis.call('HGET', nodes, rank)
    redis.call('ZADD', outbox, now + claim_ms, rank)
    reply[#reply + 1] = rank
    reply[#reply + 1] = redis.call('HGET', states, rank)
    reply[#reply + 1] = node
    bytes = bytes + #node
    if bytes > ENOUGH_BYTES then
      break
    end
  end
end
return reply
