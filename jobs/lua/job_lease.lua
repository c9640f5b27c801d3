-- Gives a worker the first ready jobs, after making ready what is due. The same token again gives the same jobs.
-- No job is asked for to recall a call that is on its way: it gives back what that has taken, or makes sure that it takes nothing.
-- Checks its keys itself.
-- State: scheduled -> ready, retry_wait -> ready, ready -> leased, ready -> dead (what is stored of it is corrupt)
-- Many that nobody touched before are tied into a bundle: see bundle_of.
-- Reply: now, next due or '', ready jobs left, '1' if paused or 'full' if as many as may run do, how many were corrupt,
-- position and record of each job that was touched before, position and head where bodies begin to be told without it ('' =
-- whole again), then id and body for each job
-- #include record_fields
-- #include server_now
-- #include read_record
-- #include pack_record
-- #include record_bytes
-- #include ready_place
-- #include promote_due
-- #include next_due
-- #include wake_one
-- #include append_attempt
-- #include tally
-- #include bucket
-- #include tally_durations
-- #include tell_runs
-- #include leased_count
local clock = KEYS[1] -- string: high-water mark of server time
local control = KEYS[2] -- hash: paused_until, paused_types, max_running, halted
local grants = KEYS[3] -- hash: seat -> its last token, and lines of id, place, id, place, …
local scheduled = KEYS[4] -- zset: id -> due score
local retry_wait = KEYS[5] -- zset: id -> due score
local ready = KEYS[6] -- zset: id -> place
local leased = KEYS[7] -- zset: id, or line break and token of a bundle -> lease deadline
local dead = KEYS[8] -- zset: id -> end
local states = KEYS[9] -- hash: id -> record
local bodies = KEYS[10] -- hash: id -> body
local attempts = KEYS[11] -- hash: id -> ended attempts
local sequence = KEYS[12] -- string: last place given
local wake = KEYS[13] -- list: wake token
local live = KEYS[14] -- prefix: one hash of figures per 10 s
local parked = KEYS[15] -- hash: type, or line break and run -> parked jobs
local parked_of = KEYS[16] -- prefix of one zset per parked type
local lines = KEYS[17] -- prefix: of the keys of the partition
local bundles = KEYS[18] -- hash: token -> packed ids and places
local bundled = KEYS[19] -- hash: token -> jobs still in the bundle
local given_now = ARGV[1] -- ms, '' = the server's clock
local worker = ARGV[2] -- worker id
local token = ARGV[3] -- made by the worker; the fence
local limit = tonumber(ARGV[4]) -- most jobs to take, 0 = recall
local lease_ms = tonumber(ARGV[5]) -- length of the lease
local attempts_kept = tonumber(ARGV[6]) -- attempts kept per job
local bundle_from = tonumber(ARGV[7]) -- fewer jobs cost no less in a bundle
local seat = ARGV[8] -- where the grant is remembered: calls of one worker that may be under way together have one each

-- Bodies are read in steps, and no more is taken once this many bytes are on their way.
local STEP, ENOUGH_BYTES, PROMOTE_LIMIT = 100, 2097152, 250
local TOUCHED_BYTES = 8192 -- a job with a record is as dear as one with so much more to send
local MOST_LOOKED = 1000 -- of jobs whose type is paused many may stand in front
local END_OF_TIME = 253402300800000 -- ms, the year 10000: the calendars of Python and SQL end before it
local CORRUPT = '{"type": "CorruptJob", "message": "What is stored of this job cannot be read.", "traceback": ""}'

local now = server_now(clock, given_now)

-- A call that takes the only job there is reads each key that it writes, or writes it first: others look before they write.
local function check_types()
  redis.call('HLEN', states)
  redis.call('HLEN', bodies)
  redis.call('HLEN', attempts)
  redis.call('HLEN', parked)
  redis.call('HLEN', bundles)
  redis.call('HLEN', bundled)
  redis.call('ZCARD', ready)
  redis.call('ZCARD', leased)
  redis.call('ZCARD', dead)
  redis.call('LLEN', wake)
  redis.call('STRLEN', sequence)
end

local function repeated_grant(packed)
  local begins_with_it = string.find(part_of(packed, 1, #token + 6), token, 1, true) -- behind one or two lengths
  local ok, grant = pcall(cmsgpack.unpack, begins_with_it and packed or '')
  if not ok or type(grant) ~= 'table' or grant[1] ~= token then
    return nil
  end
  local records = {}
  local reply = { now, next_due(scheduled, retry_wait), redis.call('ZCARD', ready), '', 0, records, {} }
  for position = 2, #grant do
    local line = type(grant[position]) == 'table' and grant[position] or {}
    for at = 1, #line, 2 do
      local id = line[at]
      local raw = type(id) == 'string' and redis.call('HGET', states, id)
      local record = raw and read_record(raw, '')
      if record and record[STATE] == 'leased' and record[TOKEN] == token then
        records[#records + 1] = (#reply - 5) / 2 -- its position
        records[#records + 1] = raw
        reply[#reply + 1] = id
        reply[#reply + 1] = redis.call('HGET', bodies, id)
      end
    end
  end
  return reply
end

local last_grant = redis.call('HGET', grants, seat)
local repeated = last_grant and repeated_grant(last_grant)
if repeated then
  if repeated[2] ~= '' or repeated[3] > 0 then
    wake_one(wake) -- a call that was recalled may have been woken for these, or to learn what is due next
  end
  return repeated
end
if limit == 0 then
  redis.call('HSET', grants, seat, cmsgpack.pack({ token }))
  return { now, '', 0, '', 0, {}, {} }
end

local facts = redis.call('HMGET', control, 'paused_until', 'paused_types', 'max_running', 'halted')
local due = next_due(scheduled, retry_wait)
if due ~= '' and due <= now then
  check_types()
  promote_due(scheduled, ready, states, sequence, now, PROMOTE_LIMIT)
  promote_due(retry_wait, ready, states, sequence, now, PROMOTE_LIMIT)
  due = next_due(scheduled, retry_wait)
end
local ready_count = redis.call('ZCARD', ready)
if now < (tonumber(facts[1] or nil) or 0) then
  return { now, due, ready_count, '1', 0, {}, {} }
end

-- The leases that there are decide, and no account of them: whatever crashed or was recovered, it is true.
local max_running = tonumber(facts[3] or nil)
local room = max_running and max_running - leased_count(leased, bundled)
if room and room <= 0 then
  return { now, due, ready_count, 'full', 0, {}, {} }
end

-- Type -> server ms until which none of it starts; nil where no type is paused.
local paused_types
if facts[2] and facts[2] ~= '' then
  local ok, types = pcall(cmsgpack.unpack, facts[2])
  paused_types = ok and type(types) == 'table' and types or nil
end

-- Whether any run is paused that has jobs here.
local has_halted = (tonumber(facts[4] or nil) or 0) > 0

-- First and last byte of the type in a body: it is the second thing in the header, a text of MessagePack.
local function type_bounds(body)
  local code, high, low = byte_at(body, 21, 23)
  if code == 217 then
    return 23, 22 + (high or 0)
  elseif code == 218 then
    return 24, 23 + (high or 0) * 256 + (low or 0)
  end
  return 22, 21 + math.max(0, math.min(31, (code or 0) - 160))
end

-- The head of the last body: all that stands before the payload.
local last_head, head_length = nil, 18

-- Jobs of one enqueue call begin with the same bytes, as far as their type goes: they are a group. `since`: since when an
-- untouched job of it is ready, nil where its times are no moments.
local beginning, group = nil, { length = 16 }
local groups = {}
local function look_at(body)
  local high, low = byte_at(body, 17, 18)
  head_length = 18 + high * 256 + low
  last_head = part_of(body, 1, head_length)
  if part_of(body, 1, group.length) ~= beginning then
    local created_at, run_at = unpack_bytes('>dd', body)
    local latest = created_at > run_at and created_at or run_at
    -- The rest of a division by 1 is 0 for whole numbers only: not for fractions, infinities and what is no number.
    local is_moment = created_at % 1 == 0 and run_at % 1 == 0 and latest > 0 and latest < END_OF_TIME
    local first, last = type_bounds(body)
    group = { length = last, type = part_of(body, first, last), since = is_moment and latest or nil, taken = 0 }
    groups[#groups + 1] = group
    beginning = part_of(body, 1, last)
  end
end

-- How long jobs have waited: type -> bucket -> how many, and the sum in ms.
local waits = {}
local function add_wait(type, since, number)
  local wait = now > since and now - since or 0
  local of_type = waits[type]
  if not of_type then
    of_type = { ms = 0 }
    waits[type] = of_type
  end
  local at = bucket_memo[wait] or bucket(wait)
  of_type[at] = (of_type[at] or 0) + number
  of_type.ms = of_type.ms + wait * number
end

local grant = { token }
local told_records, told_heads = {}, {}
local reply, records, deadlines, taken, tied = { now, '', 0, '', 0, told_records, told_heads }, {}, {}, 0, 0
local corrupt = {}
local bytes = 0
local deadline = string.format('%d', now + lease_ms) -- once: turning numbers into text is dear
local first_lease = pack_record({ 'leased', 1, 0, 0, 1, 0, 0, 0, 0, now, 0, 0, token, worker, 0, '' }) -- its place follows
local has_many = math.min(limit, ready_count) >= bundle_from and redis.call('HEXISTS', bundled, token) == 0

-- What is told of a body: what stands behind its head where that is the head of the job before it, too.
local told_head = ''
local function told_of(body, is_alike)
  local shared = is_alike and last_head or ''
  if shared ~= told_head then
    told_head = shared
    told_heads[#told_heads + 1] = taken
    told_heads[#told_heads + 1] = shared
  end
  return is_alike and part_of(body, head_length + 1) or body
end

-- The record of a touched job once it is leased, and since when it was ready; nil where it cannot be read or leased.
local function leased_again(raw, since, place)
  local record = read_record(raw, 'ready')
  if not record then
    return nil
  end
  record[STATE], record[TOKEN], record[WORKER] = 'leased', token, worker
  record[ATTEMPT], record[FENCE] = record[ATTEMPT] + 1, record[FENCE] + 1
  record[LEASED_AT], record[STARTED_AT], record[PLACE] = now, 0, place
  return pack_record(record), record[READY_AT] > 0 and record[READY_AT] or since
end

-- Whether a job that stands in the ready line is in no other state by its record.
local function may_be_ready(raw)
  local code = byte_at(raw, STATE_BYTE)
  return code == READY_CODE or not STATE_OF[code]
end

-- Where a job stands aside that is a node of a paused run; nil for all others.
local function halted_line(id)
  local node = has_halted and redis.call('HGET', lines .. 'nodes', id)
  local run = node and string.match(node, '^[^\n]*')
  return run and (tonumber(redis.call('HGET', lines .. 'halted', run) or nil) or 0) > 0 and '\n' .. run or nil
end

-- Jobs of paused types and runs leave the line as they are, and come back when the pause is over. Answers whether it was one.
local asides, aside_records, passed_over = {}, {}, 0 -- asides: line -> place, id, place, id, …
local function is_set_aside(id, place, raw)
  local is_paused = paused_types and now < (tonumber(paused_types[group.type]) or 0)
  local aside = is_paused and group.type or halted_line(id)
  local record = aside and read_record(raw, 'ready')
  if not record then
    return false
  end
  if not asides[aside] then
    redis.call('ZCARD', parked_of .. aside) -- a check: it is written to once all is known
    asides[aside] = {}
  end
  local line = asides[aside]
  line[#line + 1], line[#line + 2] = place, id
  record[STATE], record[PLACE] = 'ready', place
  aside_records[#aside_records + 1], aside_records[#aside_records + 2] = id, pack_record(record)
  passed_over = passed_over + 1
  return true
end

local function take(id, place, raw, body)
  local is_body = body and #body >= 18
  local is_alike = is_body and part_of(body, 1, head_length) == last_head
  if is_body and not is_alike then
    look_at(body)
  end
  local since = is_body and group.since
  if since and (paused_types or has_halted) and is_set_aside(id, place, raw) then
    return
  end
  local record
  if since and not raw then
    record = has_many and first_lease or first_lease .. place
  elseif since then
    record, since = leased_again(raw, since, place)
  end
  if not record then
    corrupt[#corrupt + 1] = id
    return
  end
  taken = taken + 1
  if raw then
    add_wait(group.type, since, 1)
    told_records[#told_records + 1] = taken
    told_records[#told_records + 1] = record
  else
    group.taken = group.taken + 1
  end
  if has_many and not raw then
    tied = tied + 1
  else
    deadlines[#deadlines + 1] = deadline
    deadlines[#deadlines + 1] = id
  end
  bytes = bytes + #body + (raw and TOUCHED_BYTES or 0)
  local at = 2 * taken
  records[at - 1], records[at] = id, record
  reply[at + 6], reply[at + 7] = id, told_of(body, is_alike)
end

-- The next in line, at most `step`: id, place, id, place, … Jobs that follow each other are mostly alike: of large ones fewer
-- are read at a time.
local function next_in_line(looked, step)
  if step > 1 then
    local head = redis.call('ZRANGE', ready, looked, looked)[1]
    step = math.ceil(math.min(step, ENOUGH_BYTES / (redis.call('HSTRLEN', bodies, head) + 1)))
  end
  return redis.call('ZRANGE', ready, looked, looked + step - 1, 'WITHSCORES')
end

if ready_count > 1 or has_many or paused_types or has_halted then
  check_types()
end
local wanted = room and math.min(limit, room) or limit
local looked = 0
while wanted > 0 and looked < math.min(ready_count, MOST_LOOKED) and bytes < ENOUGH_BYTES do
  local line = next_in_line(looked, math.min(STEP, wanted, ready_count - looked))
  local ids = {}
  for i = 1, #line / 2 do
    ids[i] = line[2 * i - 1]
  end
  grant[#grant + 1] = line
  local raw_records = redis.call('HMGET', states, unpack(ids))
  local raw_bodies = redis.call('HMGET', bodies, unpack(ids))
  for i = 1, #ids do
    local raw = raw_records[i]
    if not raw or may_be_ready(raw) then
      take(ids[i], line[2 * i], raw, raw_bodies[i])
    elseif not read_record(raw, '') then
      corrupt[#corrupt + 1] = ids[i] -- its state can be read, and nothing after it
    end
  end
  wanted = wanted - #ids + passed_over
  looked, passed_over = looked + #ids, 0
end

if corrupt[1] then
  check_types()
end
for aside, line in pairs(asides) do
  redis.call('HINCRBY', parked, aside, #line / 2)
  redis.call('ZADD', parked_of .. aside, unpack(line))
end
if aside_records[1] then
  redis.call('HSET', states, unpack(aside_records))
end
if taken > 0 then
  if tied > 0 then
    deadlines[#deadlines + 1] = deadline
    deadlines[#deadlines + 1] = '\n' .. token
  end
  redis.call('ZADD', leased, unpack(deadlines))
  redis.call('HSET', states, unpack(records))
  local packed = cmsgpack.pack(grant)
  redis.call('HSET', grants, seat, packed)
  if tied > 0 then
    redis.call('HSET', bundles, token, packed)
    redis.call('HSET', bundled, token, tied)
  end
  for _, alike in ipairs(groups) do
    if alike.taken > 0 then
      add_wait(alike.type, alike.since, alike.taken)
    end
  end
  tally_durations(live, now, 'wait', waits)
end
if looked > 0 then
  redis.call('ZREMRANGEBYRANK', ready, 0, looked - 1)
end
for _, id in ipairs(corrupt) do
  local record = read_record(nil, 'dead')
  record[FINISHED_AT] = now
  local packed = pack_record(record)
  redis.call('HSET', states, id, packed)
  redis.call('ZADD', dead, now, id)
  tell_runs(lines, { id, packed })
  append_attempt(attempts, id, record, now, 'failed', CORRUPT, attempts_kept)
end

local left = ready_count - looked
if left > 0 and not (room and taken >= room) then -- nobody else could take any
  wake_one(wake)
end
reply[2], reply[3], reply[5] = due, left, #corrupt
return reply
