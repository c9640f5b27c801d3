-- Has nodes of a run run again, or be as if they never had. The run stands still until it is told that this was all.
-- Errors: RUN_NOT_FOUND
-- Reply: how many nodes were changed
-- #include server_now
-- #include node_fields
-- #include agenda
-- #include move_node
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
local given_now = ARGV[1] -- ms, '' = the server's clock
local redo = ARGV[2] -- JSON: what is being done, for whoever finishes it; '' = this is all
local lifts = ARGV[3] -- packed keys of groups that get their time anew, '' = all of them
local items = 4 -- ARGV[4..]: rank; "again", "undo", "drop" (members of a group that opens anew) or "live" (a group around); version and again as they were when that was decided

local keys = {
  run = run,
  counts = counts,
  nodes = nodes,
  states = states,
  agenda = agenda,
  failures_of = failures_of,
}
if redis.call('HEXISTS', run, 'state') == 0 then
  return redis.error_reply('RUN_NOT_FOUND ' .. 'there is no such run')
end

local now = server_now(clock, given_now)
local changed = 0
local CODE_OF = { again = LIVE, undo = BLOCKED, live = LIVE, drop = SKIPPED }

-- A group that opens anew takes no notice of what it has opened into.
local function fold(rank)
  if redis.call('HGET', run, 'fold:' .. rank) == 'opening' then
    return -- it never opened: who opens it finds it so
  end
  redis.call('HDEL', run, 'fold:' .. rank)
end

local function change(rank, what, version, again)
  local state = read_state(keys, rank)
  if state[VERSION] ~= version or state[AGAIN] ~= again then
    return -- somebody else has retried it since
  end
  changed = changed + 1
  local node = read_node(keys, rank)
  move_node(keys, rank, node, state, CODE_OF[what])
  if what == 'live' then
    redis.call('HDEL', errors, rank)
    state[ENDED_AT] = 0
    write_state(keys, rank, state)
    return
  end
  state[RELEASED] = what == 'undo' and 0 or 1
  state[STARTED_AT], state[ENDED_AT], state[ATTEMPTS] = 0, 0, 0
  state[RELEASED_AT] = what == 'again' and now or 0
  state[AGAIN] = state[JOB] == '' and state[AGAIN] + 1 or math.floor(state[VERSION] / 2) + 1
  write_state(keys, rank, state)
  redis.call('HDEL', results, rank)
  redis.call('HDEL', errors, rank)
  redis.call('ZREM', outbox, rank)
  redis.call('HDEL', run, 'stop:' .. state[JOB])
  fold(rank)
  if what == 'again' then
    redis.call('ZADD', outbox, 0, rank)
  end
end

-- Groups that are cut go on: those that get their time anew, and those in them that were cut because of them.
local function lift()
  local raw = lifts ~= '' and redis.call('HGET', run, 'cuts')
  local lifted, left = {}, {}
  for _, group in ipairs(raw and cmsgpack.unpack(lifts) or {}) do
    lifted[group] = true
  end
  for group, because_of in pairs(raw and cmsgpack.unpack(raw) or {}) do
    if not (lifted[group] or lifted[because_of]) then
      left[group] = because_of
    end
  end
  if next(left) then
    redis.call('HSET', run, 'cuts', cmsgpack.pack(left))
  else
    redis.call('HDEL', run, 'cuts')
  end
end

lift()
for at = items, #ARGV, 4 do
  change(ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3]))
end
if redo ~= '' then
  if redis.call('HGET', run, 'state') ~= 'running' then
    redis.call('HINCRBY', run, 'lives', 1)
  end
  redis.call('HSET', run, 'redo', redo, 'state', 'running', 'finished_at', '')
else
  redis.call('HDEL', run, 'redo', 'cancelled', 'stopped')
  sweep_later(keys, 0)
  judge_later(keys, '', 0)
end
return changed
