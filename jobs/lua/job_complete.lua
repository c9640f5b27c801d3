-- Ends attempts that succeeded. A job that was asked to stop meanwhile ends as cancelled and its result is dropped.
-- State: leased -> succeeded | cancelled
-- Reply: for each job "ok" (also when this very call was made before) | "cancelled" | "lost"
-- #include record_fields
-- #include server_now
-- #include read_record
-- #include pack_record
-- #include record_bytes
-- #include append_attempt
-- #include count
-- #include measure
local clock = KEYS[1] -- string: high-water mark of server time
local leased = KEYS[2] -- zset: id -> lease deadline
local succeeded = KEYS[3] -- zset: id -> end
local cancelled = KEYS[4] -- zset: id -> end
local states = KEYS[5] -- hash: id -> record
local results = KEYS[6] -- hash: id -> JSON
local attempts = KEYS[7] -- hash: id -> ended attempts
local expiring = KEYS[8] -- zset: id -> forget at
local counters = KEYS[9] -- hash: totals
local series = KEYS[10] -- hash: time series
local given_now = ARGV[1] -- ms, '' = the server's clock
local attempts_kept = tonumber(ARGV[2]) -- attempts kept per job
local items = 3 -- ARGV[3..]: id, token, type, started_at (ms), result ('' = none), own retention (ms, '' = the default)

local now = server_now(clock, given_now)
local total = (#ARGV - 2) / 6
local ids = {}
for i = 1, total do
  ids[i] = ARGV[6 * i - 3]
end
local raw_records = redis.call('HMGET', states, unpack(ids))

local reply = {}
local ended, records, done, done_count = {}, {}, {}, 0
local stopped, kept, retained = {}, {}, {}
local done_of, stopped_of = {}, {}
local ran = 0
local now_text = string.format('%.0f', now) -- once: turning numbers into text is dear
local now_bytes = struct.pack('>I8', now)
local at = items
for i = 1, total do
  local id, raw, token, type = ids[i], raw_records[i], ARGV[at + 1], ARGV[at + 2]
  local state = raw and is_under_token(raw, token) and byte_at(raw, STATE_BYTE)
  if state == LEASED_CODE and byte_at(raw, CANCEL_BYTE) == 0 then
    local started_at = tonumber(ARGV[at + 3])
    done_count = done_count + 1
    ended[done_count] = id
    records[2 * done_count - 1] = id
    records[2 * done_count] = succeeded_bytes(raw, started_at, now_bytes)
    done[2 * done_count - 1] = now_text
    done[2 * done_count] = id
    done_of[type] = (done_of[type] or 0) + 1
    if now > started_at then
      ran = ran + now - started_at
    end
    if ARGV[at + 4] ~= '' then
      kept[#kept + 1] = id
      kept[#kept + 1] = ARGV[at + 4]
    end
    if ARGV[at + 5] ~= '' then
      retained[#retained + 1] = now + tonumber(ARGV[at + 5])
      retained[#retained + 1] = id
    end
    reply[i] = 'ok'
  elseif state == LEASED_CODE then
    stopped[#stopped + 1] = i
    stopped_of[type] = (stopped_of[type] or 0) + 1
    reply[i] = 'cancelled'
  elseif state == SUCCEEDED_CODE then
    reply[i] = 'ok'
  elseif state == CANCELLED_CODE then
    reply[i] = 'cancelled'
  else
    reply[i] = 'lost'
  end
  at = at + 6
end

if done_count > 0 then
  redis.call('ZREM', leased, unpack(ended))
  redis.call('HSET', states, unpack(records))
  redis.call('ZADD', succeeded, unpack(done))
  measure(series, now, 'succeeded', done_count)
  measure(series, now, 'run_ms', ran)
end
for _, i in ipairs(stopped) do
  local id, record = ids[i], read_record(raw_records[i], '')
  record[STATE], record[STARTED_AT], record[FINISHED_AT] = 'cancelled', tonumber(ARGV[6 * i]), now
  redis.call('ZREM', leased, id)
  redis.call('ZADD', cancelled, now_text, id)
  redis.call('HSET', states, id, pack_record(record))
  append_attempt(attempts, id, record, now, 'cancelled', false, attempts_kept)
end
if kept[1] then
  redis.call('HSET', results, unpack(kept))
end
if retained[1] then
  redis.call('ZADD', expiring, unpack(retained))
end
for type, number in pairs(done_of) do
  count(counters, 'succeeded', type, number)
end
for type, number in pairs(stopped_of) do
  count(counters, 'cancelled', type, number)
end
return reply
