-- Makes ended jobs live again, with fresh budgets and their history kept.
-- State: dead -> ready, cancelled -> ready
-- Reply: for each job "ok", "JOB_NOT_FOUND", "later" where it ended after the given moment, "moved" where another job goes
-- on for it, or the state that does not allow it
-- #include record_fields
-- #include server_now
-- #include read_record
-- #include pack_record
-- #include read_header
-- #include untouched_state
-- #include ready_place
-- #include wake_one
-- #include tally
-- #include tell_runs
local clock = KEYS[1] -- string: high-water mark of server time
local bodies = KEYS[2] -- hash: id -> body
local states = KEYS[3] -- hash: id -> record
local dead = KEYS[4] -- zset: id -> end
local cancelled = KEYS[5] -- zset: id -> end
local ready = KEYS[6] -- zset: id -> place
local progress = KEYS[7] -- hash: id -> progress
local results = KEYS[8] -- hash: id -> JSON
local sequence = KEYS[9] -- string: last place given
local live = KEYS[10] -- prefix: one hash of figures per 10 s
local wake = KEYS[11] -- list: wake token
local scheduled = KEYS[12] -- zset: id -> due score
local lines = KEYS[13] -- prefix: of the keys of the partition
local given_now = ARGV[1] -- ms, '' = the server's clock
local payload = ARGV[2] -- new payload, '' = as it was
local ended_by = tonumber(ARGV[3]) -- only those that ended at or before this moment, ms; '' = any
local items = 4 -- ARGV[4..]: id

local now = server_now(clock, given_now)

-- The run of a node learns that it may end otherwise.
local function live_again(id, header, packed)
  local extras = header[8]
  if type(extras) == 'table' and extras.workflow_run then
    redis.call('HSET', lines .. 'nodes', id, extras.workflow_run .. '\n' .. (extras.node or ''))
    tell_runs(lines, { id, packed })
  end
end

-- It ended by a move and names its successor: both alive would be the same work twice.
local function was_moved(id)
  local left = redis.call('HGET', results, id)
  return left and string.find(left, '{"moved_to":', 1, true) == 1
end

local function resubmit_one(id)
  local raw = redis.call('HGET', states, id)
  local body = redis.call('HGET', bodies, id)
  if not raw and (not body or body == '') then
    return 'JOB_NOT_FOUND'
  end
  local record, header = read_record(raw, untouched_state(id, scheduled)), read_header(body)
  if not record or not header then
    return 'unreadable'
  end
  local state = record[STATE]
  if state ~= 'dead' and state ~= 'cancelled' then
    return state
  end
  if ended_by and record[FINISHED_AT] > ended_by then
    return 'later'
  end
  if state == 'cancelled' and was_moved(id) then
    return 'moved'
  end
  if payload ~= '' then
    local head = 18 + struct.unpack('>H', body, 17)
    redis.call('HSET', bodies, id, string.sub(body, 1, head) .. payload)
  end
  local place = ready_place(header[3], redis.call('INCR', sequence))
  record[STATE], record[READY_AT], record[PLACE] = 'ready', now, place
  record[ATTEMPT], record[ERRORS], record[CRASHES], record[LOST], record[CANCEL] = 0, 0, 0, 0, 0
  record[LEASED_AT], record[STARTED_AT], record[FINISHED_AT], record[RUN_AT] = 0, 0, 0, 0
  record[TOKEN], record[WORKER] = '', ''
  record[RESUBMISSIONS] = record[RESUBMISSIONS] + 1
  redis.call('ZREM', state == 'dead' and dead or cancelled, id)
  redis.call('ZADD', ready, place, id)
  local packed = pack_record(record)
  redis.call('HSET', states, id, packed)
  live_again(id, header, packed)
  redis.call('HDEL', progress, id)
  tally(live, now, 'resubmitted', header[2], 1)
  return 'ok'
end

local reply, any = {}, false
for i = 1, #ARGV - 3 do
  reply[i] = resubmit_one(ARGV[i + 3])
  any = any or reply[i] == 'ok'
end
if any then
  wake_one(wake)
end
return reply
