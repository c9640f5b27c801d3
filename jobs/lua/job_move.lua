-- The first half of a move to another pool: waiting jobs end here, and name the job that goes on for them. What they were
-- is answered, also to the same move asked again, so that whoever met a half-done move can finish it. Until it is told
-- that the successor is there (job_move_end), nothing forgets the job that ended: its body is all that there is.
-- State: ready | scheduled | retry_wait -> cancelled
-- Reply: for each job a list: "ok", "JOB_NOT_FOUND", "node" or "unique" (others must know where it is), or the state that
-- does not allow it; behind "ok", unless its move is over, the note that it was left with, when it is due (0: it was
-- ready), and its body
-- #include record_fields
-- #include server_now
-- #include read_record
-- #include pack_record
-- #include read_header
-- #include leave_waiting
-- #include tally
local clock = KEYS[1] -- string: high-water mark of server time
local bodies = KEYS[2] -- hash: id -> body
local states = KEYS[3] -- hash: id -> record
local results = KEYS[4] -- hash: id -> JSON
local scheduled = KEYS[5] -- zset: id -> due score
local retry_wait = KEYS[6] -- zset: id -> due score
local ready = KEYS[7] -- zset: id -> place
local blocked = KEYS[8] -- zset: id -> since
local throttled = KEYS[9] -- zset: id -> place
local cancelled = KEYS[10] -- zset: id -> end
local parked = KEYS[11] -- hash: type -> parked jobs
local parked_of = KEYS[12] -- prefix of one zset per parked type
local live = KEYS[13] -- prefix: one hash of figures per 10 s
local expiring = KEYS[14] -- zset: id -> forget at; 'inf': half moved
local given_now = ARGV[1] -- ms, '' = the server's clock
local mark = ARGV[2] -- what the notes of this move have in common, and no other's
local only_finish = ARGV[3] -- '1': move no more, only answer what was moved
local items = 4 -- ARGV[4..]: id, note (JSON: the result of the job that ends)

local now = server_now(clock, given_now)
local lines = { ready = ready, scheduled = scheduled, retry_wait = retry_wait, blocked = blocked, throttled = throttled }
lines.parked, lines.parked_of = parked, parked_of

local FORMAT = 1 -- of a body: what a newer release has written stays until one like it comes
local MOVABLE = { ready = true, scheduled = true, retry_wait = true, waiting = true }

local function bound_to(header)
  local extras = type(header[8]) == 'table' and header[8] or {}
  return extras.workflow_run and 'node' or extras.unique and 'unique' or nil
end

local function move_one(id, note)
  local raw, body = redis.call('HGET', states, id), redis.call('HGET', bodies, id)
  if not raw and (not body or body == '') then
    return 'JOB_NOT_FOUND'
  end
  local record, header = read_record(raw, 'waiting'), read_header(body)
  if not record or not header or header[1] ~= FORMAT then
    return 'unreadable'
  end
  local left = redis.call('HGET', results, id)
  if record[STATE] == 'cancelled' and left and string.find(left, mark, 1, true) then
    local half = redis.call('ZSCORE', expiring, id) == 'inf'
    return 'ok', left, record[RUN_AT], half and body
  end
  local bound = bound_to(header)
  if not MOVABLE[record[STATE]] or only_finish == '1' or bound then
    return MOVABLE[record[STATE]] and bound or record[STATE]
  end
  local line, score = leave_waiting(id, lines, header[2])
  if not line then
    return 'unreadable'
  end
  local due = line == 'ready' and 0 or math.floor(score)
  record[STATE], record[FINISHED_AT], record[RUN_AT] = 'cancelled', now, due
  redis.call('HSET', states, id, pack_record(record))
  redis.call('HSET', results, id, note)
  redis.call('ZADD', cancelled, now, id)
  redis.call('ZADD', expiring, 'inf', id)
  tally(live, now, 'cancelled', header[2], 1)
  return 'ok', note, due, body
end

local reply = {}
for i = items, #ARGV, 2 do
  local answer, note, due, body = move_one(ARGV[i], ARGV[i + 1])
  reply[#reply + 1] = body and { answer, note, string.format('%d', due), body } or { answer }
end
return reply
