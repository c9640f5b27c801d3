-- Removes ended jobs for good.
-- State: succeeded | dead | cancelled | skipped -> (none)
-- Reply: for each job "ok", "JOB_NOT_FOUND", "later" where it ended after the given moment, "moving" where the job that
-- goes on for it is yet to be made of it, or the state that does not allow it
-- #include record_fields
-- #include read_record
-- #include untouched_state
-- #include log_entries
-- #include forget_logs
-- #include forget_jobs
local bodies = KEYS[1] -- hash: id -> body
local states = KEYS[2] -- hash: id -> record
local attempts = KEYS[3] -- hash: id -> ended attempts
local results = KEYS[4] -- hash: id -> JSON
local progress = KEYS[5] -- hash: id -> progress
local expiring = KEYS[6] -- zset: id -> forget at; 'inf': half moved
local succeeded = KEYS[7] -- zset: id -> end
local dead = KEYS[8] -- zset: id -> end
local cancelled = KEYS[9] -- zset: id -> end
local skipped = KEYS[10] -- zset: id -> end
local scheduled = KEYS[11] -- zset: id -> due score
local logs = KEYS[12] -- hash: id -> which attempts have lines
local log_of = KEYS[13] -- prefix of one list of lines per attempt
local ended_by = tonumber(ARGV[1]) -- only those that ended at or before this moment, ms; '' = any
local items = 2 -- ARGV[2..]: id

local keys = { bodies = bodies, states = states, attempts = attempts, results = results, progress = progress, expiring = expiring }
keys.logs, keys.log_of = logs, log_of
local lines = { succeeded = succeeded, dead = dead, cancelled = cancelled, skipped = skipped }

local function discard_one(id)
  local raw = redis.call('HGET', states, id)
  if not raw then
    return redis.call('HSTRLEN', bodies, id) > 0 and untouched_state(id, scheduled) or 'JOB_NOT_FOUND'
  end
  local record = read_record(raw, '')
  local line = record and lines[record[STATE]]
  if record and not line then
    return record[STATE]
  end
  if ended_by and record and record[FINISHED_AT] > ended_by then
    return 'later'
  end
  if record and record[STATE] == 'cancelled' and redis.call('ZSCORE', expiring, id) == 'inf' then
    return 'moving'
  end
  local removed = 0
  for _, ended in pairs(line and { line } or lines) do
    removed = removed + redis.call('ZREM', ended, id)
  end
  if not line and removed == 0 then
    return 'unreadable' -- and in no line of ended jobs: it may be live
  end
  forget_jobs({ id }, keys)
  return 'ok'
end

local reply = {}
for i = items, #ARGV do
  reply[#reply + 1] = discard_one(ARGV[i])
end
return reply
