-- Ends attempts that succeeded. A job that was asked to stop meanwhile ends as cancelled and its result is dropped.
-- State: leased -> succeeded | cancelled
-- Reply: for each job "ok" (also when this very call was made before) | "cancelled" | "lost"
-- #include record_fields
-- #include server_now
-- #include read_record
-- #include pack_record
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
local ended, records, done, stopped, kept, retained = {}, {}, {}, {}, {}, {}
local done_of, stopped_of = {}, {}
local ran = 0
local now_text = string.format('%.0f', now) -- once: turning numbers into text is dear
for i, id in ipairs(ids) do
  local at = 6 * i - 3
  local token, type = ARGV[at + 1], ARGV[at + 2]
  local record = raw_records[i] and read_record(raw_records[i], '')
  if not record or record[TOKEN] ~= token then
    reply[i] = 'lost'
  elseif record[STATE] == 'leased' then
    record[STARTED_AT], record[FINISHED_AT], record[LOST] = tonumber(ARGV[at + 3]), now, 0
    ended[#ended + 1] = id
    if record[CANCEL] == 1 then
      record[STATE] = 'cancelled'
      stopped[#stopped + 1] = now_text
      stopped[#stopped + 1] = id
      stopped_of[type] = (stopped_of[type] or 0) + 1
      append_attempt(attempts, id, record, now, 'cancelled', false, attempts_kept)
      reply[i] = 'cancelled'
    else
      record[STATE] = 'succeeded'
      done[#done + 1] = now_text
      done[#done + 1] = id
      done_of[type] = (done_of[type] or 0) + 1
      ran = ran + math.max(0, now - record[STARTED_AT])
      if ARGV[at + 4] ~= '' then
        kept[#kept + 1] = id
        kept[#kept + 1] = ARGV[at + 4]
      end
      if ARGV[at + 5] ~= '' then
        retained[#retained + 1] = now + tonumber(ARGV[at + 5])
        retained[#retained + 1] = id
      end
      reply[i] = 'ok'
    end
    records[#records + 1] = id
    records[#records + 1] = pack_record(record)
  elseif record[STATE] == 'succeeded' then
    reply[i] = 'ok'
  elseif record[STATE] == 'cancelled' then
    reply[i] = 'cancelled'
  else
    reply[i] = 'lost'
  end
end

if ended[1] then
  redis.call('ZREM', leased, unpack(ended))
  redis.call('HSET', states, unpack(records))
end
if done[1] then
  redis.call('ZADD', succeeded, unpack(done))
  measure(series, now, 'succeeded', #done / 2)
  measure(series, now, 'run_ms', ran)
end
if stopped[1] then
  redis.call('ZADD', cancelled, unpack(stopped))
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
