-- Makes the ended jobs of nodes live again, with new payloads, unless they have lived as often already: so the same call may
-- be made again. A job that is gone is created anew.
-- State: succeeded | dead | cancelled -> ready, (none) -> ready
-- Reply: for each "ok", "there" (it has lived as often as that), "living" (the life before has not ended: it was skipped and
-- is stopping), or "unreadable"
-- #include record_fields
-- #include server_now
-- #include read_record
-- #include pack_record
-- #include read_header
-- #include ready_place
-- #include wake_one
-- #include tally
local clock = KEYS[1] -- string: high-water mark of server time
local bodies = KEYS[2] -- hash: id -> body
local states = KEYS[3] -- hash: id -> record
local nodes = KEYS[4] -- hash: id of a live job -> run and node
local succeeded = KEYS[5] -- zset: id -> end
local dead = KEYS[6] -- zset: id -> end
local cancelled = KEYS[7] -- zset: id -> end
local expiring = KEYS[8] -- zset: id -> forget at
local ready = KEYS[9] -- zset: id -> place
local results = KEYS[10] -- hash: id -> JSON
local progress = KEYS[11] -- hash: id -> progress
local sequence = KEYS[12] -- string: last place given
local live = KEYS[13] -- prefix: one hash of figures per 10 s
local wake = KEYS[14] -- list: wake token
local lines = KEYS[15] -- prefix: of the keys of the partition
local given_now = ARGV[1] -- ms, '' = the server's clock
local items = 2 -- ARGV[2..]: id, run and node, how often it is to have been resubmitted, body without its times

local ENDED = { succeeded = succeeded, dead = dead, cancelled = cancelled }
local now = server_now(clock, given_now)

local function resubmit(id, node, again, body)
  local raw = redis.call('HGET', states, id)
  local old_body = redis.call('HGET', bodies, id)
  local is_gone = not raw and (not old_body or old_body == '')
  local record = read_record(raw, 'ready')
  if not record then
    return 'unreadable'
  end
  if not is_gone and record[RESUBMISSIONS] >= again then
    return 'there'
  elseif not is_gone and not ENDED[record[STATE]] then
    return 'living'
  end
  local times = old_body and #old_body > 16 and string.sub(old_body, 1, 16) or struct.pack('>dd', now, now)
  local header = read_header(times .. body)
  if not header then
    return 'unreadable'
  end
  if ENDED[record[STATE]] then
    redis.call('ZREM', ENDED[record[STATE]], id)
  end
  local place = ready_place(header[3], redis.call('INCR', sequence))
  record[STATE], record[READY_AT], record[PLACE] = 'ready', now, place
  record[ATTEMPT], record[ERRORS], record[CRASHES], record[LOST], record[CANCEL] = 0, 0, 0, 0, 0
  record[LEASED_AT], record[STARTED_AT], record[FINISHED_AT], record[RUN_AT] = 0, 0, 0, 0
  record[TOKEN], record[WORKER], record[RESUBMISSIONS] = '', '', again
  redis.call('HSET', bodies, id, times .. body)
  redis.call('HSET', states, id, pack_record(record))
  redis.call('HSET', nodes, id, node)
  redis.call('ZADD', ready, place, id)
  redis.call('ZREM', expiring, id)
  redis.call('HDEL', results, id)
  redis.call('HDEL', progress, id)
  redis.call('HDEL', lines .. 'outbox', id) -- what its run was to hear is of the life before
  tally(live, now, 'resubmitted', header[2], 1)
  return 'ok'
end

local reply, any = {}, false
for i = items, #ARGV, 4 do
  local answer = resubmit(ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2]), ARGV[i + 3])
  reply[#reply + 1] = answer
  any = any or answer == 'ok'
end
if any then
  wake_one(wake)
end
return reply
