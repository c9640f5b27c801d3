-- Ends attempts that succeeded. A job that was asked to stop meanwhile ends as cancelled and its result is dropped.
-- Checks its keys itself.
-- State: leased -> succeeded | cancelled
-- Reply: position and "cancelled" | "lost" for each job that did not succeed; it is no mistake to make the call again
-- #include record_fields
-- #include server_now
-- #include read_record
-- #include pack_record
-- #include record_bytes
-- #include append_attempt
-- #include tally
-- #include bucket
-- #include tally_durations
-- #include tell_runs
-- #include bundle_of
-- #include leave_bundle
local clock = KEYS[1] -- string: high-water mark of server time
local leased = KEYS[2] -- zset: id, or line break and token of a bundle -> lease deadline
local succeeded = KEYS[3] -- zset: id -> end
local cancelled = KEYS[4] -- zset: id -> end
local states = KEYS[5] -- hash: id -> record
local results = KEYS[6] -- hash: id -> JSON
local attempts = KEYS[7] -- hash: id -> ended attempts
local expiring = KEYS[8] -- zset: id -> forget at
local live = KEYS[9] -- prefix: one hash of figures per 10 s
local lines = KEYS[10] -- prefix: of the keys of the partition
local bundles = KEYS[11] -- hash: token -> packed ids and places
local bundled = KEYS[12] -- hash: token -> jobs still in the bundle
local given_now = ARGV[1] -- ms, '' = the server's clock
local attempts_kept = tonumber(ARGV[2]) -- attempts kept per job
local items = 3 -- ARGV[3..]: groups of token, type, own retention (ms, '' = the default), '1' if results follow, how many runs; a run is start (8 bytes, ms) and count (2 bytes) in one, then that many times id, and result

-- Whether these are the bytes of a record under this token.
local function is_under_token(raw, token)
  return byte_at(raw, TOKEN_BYTE - 1) == #token and part_of(raw, TOKEN_BYTE, TOKEN_BYTE - 1 + #token) == token
end

-- How many bytes come before STARTED_AT.
local function head_length(raw, token)
  local worker_byte = TOKEN_BYTE + #token
  return worker_byte + byte_at(raw, worker_byte)
end

-- What comes before STARTED_AT once the job has succeeded: state, no lost leases, finished.
local SUCCEEDED_STATE = string.char(SUCCEEDED_CODE)
local function succeeded_head(head, finished_at_bytes)
  return SUCCEEDED_STATE .. part_of(head, 2, 17) .. '\0' .. part_of(head, 19, 39) .. finished_at_bytes .. part_of(head, 48)
end

local now = server_now(clock, given_now)
local ids, starts, results_of, groups = {}, {}, {}, {}
local at, last, size = items, 0, #ARGV
while at <= size do
  local first, runs, width = last + 1, tonumber(ARGV[at + 4]), ARGV[at + 3] == '1' and 2 or 1
  assert(runs and runs <= size, 'a group of completions has no number of runs')
  local token, type, retention = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2])
  at = at + 5
  for _ = 1, runs do
    local start, count = unpack_bytes('>I8I2', ARGV[at])
    assert(count <= size, 'a run of completions counts more than there are')
    at = at + 1
    for i = last + 1, last + count do
      ids[i], starts[i] = ARGV[at], start
      if width == 2 then
        results_of[i] = ARGV[at + 1] -- to write nil would cost as much
      end
      at = at + width
    end
    last = last + count
  end
  groups[#groups + 1] = { token = token, type = type, retention = retention, first = first, last = last, tied = 0 }
end
local raw_records = redis.call('HMGET', states, unpack(ids))

local reply = {}
local ended, records, done, done_count = {}, {}, {}, 0
local stopped, kept, retained = {}, {}, {}
local stopped_of, lost_of = {}, {}
local runs_of, runs = {}, nil -- how long jobs ran: type -> bucket -> how many, and the sum in ms
local now_text = string.format('%d', now) -- once: turning numbers into text is dear
local now_bytes = pack_bytes('>I8', now)

-- A job of a bundle has nothing behind STARTED_AT.
local function succeed(i, record, group, is_tied)
  local id = ids[i]
  if results_of[i] then
    kept[#kept + 1] = id
    kept[#kept + 1] = results_of[i]
  end
  local ran = now > starts[i] and now - starts[i] or 0
  local bucket_of_run = bucket_memo[ran] or bucket(ran)
  runs[bucket_of_run] = (runs[bucket_of_run] or 0) + 1
  runs.ms = runs.ms + ran
  if group.retention then
    retained[#retained + 1] = now + group.retention
    retained[#retained + 1] = id
  end
  done_count = done_count + 1
  local place = 2 * done_count
  if is_tied then
    group.tied = group.tied + 1
  else
    ended[#ended + 1] = id
  end
  records[place - 1], records[place] = id, record
  done[place - 1], done[place] = now_text, id
end

for _, group in ipairs(groups) do
  local length, head, new_head, start, record, last_raw = 0, nil, nil, nil, nil, nil
  runs = runs_of[group.type] or { ms = 0 }
  runs_of[group.type] = runs
  for i = group.first, group.last do
    local raw = raw_records[i]
    -- Jobs of one lease call have the same head, those of a bundle the same record; and Lua compares texts by address.
    if raw and head and (raw == last_raw or part_of(raw, 1, length) == head) then
      if starts[i] ~= start then
        start = starts[i]
        record = new_head .. pack_bytes('>I8', start)
      end
      last_raw = raw
      succeed(i, record, group, #raw == length + 8)
    else
      local state = raw and is_under_token(raw, group.token) and byte_at(raw, STATE_BYTE)
      if state == LEASED_CODE and byte_at(raw, CANCEL_BYTE) == 0 then
        length = head_length(raw, group.token)
        head, start = part_of(raw, 1, length), starts[i]
        new_head = succeeded_head(head, now_bytes)
        record = new_head .. pack_bytes('>I8', start)
        succeed(i, record, group, #raw == length + 8)
      elseif state ~= SUCCEEDED_CODE then
        if state == LEASED_CODE then
          stopped[#stopped + 1] = i
          stopped_of[group.type] = (stopped_of[group.type] or 0) + 1
        elseif state ~= CANCELLED_CODE then
          lost_of[group.type] = (lost_of[group.type] or 0) + 1
        end
        reply[#reply + 1] = i
        reply[#reply + 1] = (state == LEASED_CODE or state == CANCELLED_CODE) and 'cancelled' or 'lost'
      end
    end
  end
end

-- How many jobs of a bundle a group has ended. Whoever tells of a job twice has ended it once.
local counted = {}
local function tied_once(group)
  local number = 0
  for i = group.first, group.last do
    if raw_records[i] and not counted[ids[i]] and bundle_of(raw_records[i]) == group.token then
      counted[ids[i]], number = true, number + 1
    end
  end
  return number
end

-- Before the first write, which is to `leased`, all that others go to is looked at.
local is_tied = false
for _, group in ipairs(groups) do
  is_tied = is_tied or group.tied > 0
end
if is_tied then
  redis.call('HLEN', bundles)
  redis.call('HLEN', bundled)
  redis.call('ZCARD', leased)
end
if done_count > 0 then
  redis.call('ZCARD', succeeded)
end
if stopped[1] then
  redis.call('ZCARD', cancelled)
  redis.call('HLEN', attempts)
end
if kept[1] then
  redis.call('HLEN', results)
end
if retained[1] then
  redis.call('ZCARD', expiring)
end

if done_count > 0 then
  if ended[1] then
    redis.call('ZREM', leased, unpack(ended))
  end
  redis.call('HSET', states, unpack(records))
  local has_doubles = redis.call('ZADD', succeeded, unpack(done)) < done_count
  for _, group in ipairs(groups) do
    local number = has_doubles and tied_once(group) or group.tied
    if number > 0 then
      leave_bundle({ leased = leased, bundles = bundles, bundled = bundled }, group.token, number)
    end
  end
  tell_runs(lines, records)
  tally_durations(live, now, 'run', runs_of)
end
for _, i in ipairs(stopped) do
  local id, record = ids[i], read_record(raw_records[i], '')
  record[STATE], record[STARTED_AT], record[FINISHED_AT], record[LOST] = 'cancelled', starts[i], now, 0
  redis.call('ZREM', leased, id)
  redis.call('ZADD', cancelled, now_text, id)
  local packed = pack_record(record)
  redis.call('HSET', states, id, packed)
  append_attempt(attempts, id, record, now, 'cancelled', false, attempts_kept)
  tell_runs(lines, { id, packed })
end
if kept[1] then
  redis.call('HSET', results, unpack(kept))
end
if retained[1] then
  redis.call('ZADD', expiring, unpack(retained))
end
for type, number in pairs(stopped_of) do
  tally(live, now, 'cancelled', type, number)
end
for type, number in pairs(lost_of) do
  tally(live, now, 'stale', type, number)
end
return reply
