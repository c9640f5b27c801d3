-- Ends attempts that did not succeed, as the worker decided: try again later, bury, put off, or stop.
-- State: leased -> retry_wait | dead | scheduled | cancelled
-- Reply: for each job the state it is in now, or "lost"
-- #include record_fields
-- #include server_now
-- #include read_record
-- #include pack_record
-- #include due_score
-- #include append_attempt
-- #include wake_one
-- #include tally
-- #include tell_runs
-- #include record_bytes
-- #include bundle_of
-- #include leave_bundle
-- #include read_bundle
-- #include untie
-- #include untie_items
local clock = KEYS[1] -- string: high-water mark of server time
local leased = KEYS[2] -- zset: id, or line break and token of a bundle -> lease deadline
local retry_wait = KEYS[3] -- zset: id -> due score
local scheduled = KEYS[4] -- zset: id -> due score
local dead = KEYS[5] -- zset: id -> end
local cancelled = KEYS[6] -- zset: id -> end
local states = KEYS[7] -- hash: id -> record
local attempts = KEYS[8] -- hash: id -> ended attempts
local live = KEYS[9] -- prefix: one hash of figures per 10 s
local wake = KEYS[10] -- list: wake token
local lines = KEYS[11] -- prefix: of the keys of the partition
local bundles = KEYS[12] -- hash: token -> packed ids and places
local bundled = KEYS[13] -- hash: token -> jobs still in the bundle
local given_now = ARGV[1] -- ms, '' = the server's clock
local attempts_kept = tonumber(ARGV[2]) -- attempts kept per job
local items = 3 -- ARGV[3..]: id, token, type, started_at (ms), "retry"|"dead"|"snooze"|"cancelled", delay (ms), priority, error JSON or ''

local STATES = { retry = 'retry_wait', dead = 'dead', snooze = 'scheduled', cancelled = 'cancelled' }

local now = server_now(clock, given_now)

-- Where a waiting fetcher may have to wake earlier than it knows.
local function wait_until(line, id, due, priority)
  redis.call('ZADD', line, due_score(due, priority), id)
  local head = redis.call('ZRANGE', line, 0, 0)
  if head[1] == id then
    wake_one(wake)
  end
end

local function fail_one(at)
  local id, token, type = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  local outcome, delay, priority, failure = ARGV[at + 4], tonumber(ARGV[at + 5]), tonumber(ARGV[at + 6]), ARGV[at + 7]
  local raw = redis.call('HGET', states, id)
  local record = raw and read_record(raw, '')
  if not record or record[TOKEN] ~= token then
    tally(live, now, 'stale', type, 1)
    return 'lost'
  end
  if record[STATE] ~= 'leased' then
    return record[STATE] -- this call was made before
  end

  local state = record[CANCEL] == 1 and 'cancelled' or STATES[outcome]
  record[STATE], record[STARTED_AT], record[LOST] = state, tonumber(ARGV[at + 3]), 0
  redis.call('ZREM', leased, id)
  if state == 'scheduled' then
    record[ATTEMPT], record[RUN_AT], record[STARTED_AT] = record[ATTEMPT] - 1, now + delay, 0
    wait_until(scheduled, id, now + delay, priority)
    tally(live, now, 'snoozed', type, 1)
  else
    append_attempt(attempts, id, record, now, state == 'cancelled' and 'cancelled' or 'failed', failure ~= '' and failure, attempts_kept)
    if state == 'cancelled' then
      record[FINISHED_AT] = now
      redis.call('ZADD', cancelled, now, id)
      tally(live, now, 'cancelled', type, 1)
    else
      record[ERRORS] = record[ERRORS] + 1
      tally(live, now, 'failed', type, 1)
      tally(live, now, 'failed_ms', type, math.max(0, now - record[STARTED_AT]))
      if state == 'retry_wait' then
        record[RUN_AT] = now + delay
        wait_until(retry_wait, id, now + delay, priority)
        tally(live, now, 'retried', type, 1)
      else
        record[FINISHED_AT] = now
        redis.call('ZADD', dead, now, id)
        tally(live, now, 'dead', type, 1)
      end
    end
  end
  local packed = pack_record(record)
  redis.call('HSET', states, id, packed)
  if state == 'dead' or state == 'cancelled' then
    tell_runs(lines, { id, packed })
  end
  return state
end

untie_items({ states = states, leased = leased, bundles = bundles, bundled = bundled }, items, 8)
local reply = {}
for i = 1, (#ARGV - 2) / 8 do
  reply[i] = fail_one(8 * i - 5)
end
return reply
