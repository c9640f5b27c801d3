-- Takes back jobs whose lease ran out. Started ones are charged a crash; unstarted ones go back as they were, until they
-- were lost so often in a row that the job itself must be the cause.
-- State: leased -> ready | dead | cancelled (it was asked to stop)
-- Reply: now, charged, handed back, buried, next deadline or '', '1' if held back after a jump of the server's clock, then
-- the ids of the buried
-- #include record_fields
-- #include server_now
-- #include read_record
-- #include pack_record
-- #include read_header
-- #include append_attempt
-- #include tally
-- #include tell_runs
-- #include hand_back
-- #include charge_crash
-- #include wake_one
-- #include record_bytes
-- #include bundle_of
-- #include leave_bundle
-- #include read_bundle
-- #include untie
-- #include open_bundle
local clock = KEYS[1] -- string: high-water mark of server time
local control = KEYS[2] -- hash: recovered_at, hold_until, clock_alarm, max_running
local leased = KEYS[3] -- zset: id, or line break and token of a bundle -> lease deadline
local ready = KEYS[4] -- zset: id -> place
local dead = KEYS[5] -- zset: id -> end
local cancelled = KEYS[6] -- zset: id -> end
local states = KEYS[7] -- hash: id -> record
local bodies = KEYS[8] -- hash: id -> body
local attempts = KEYS[9] -- hash: id -> ended attempts
local live = KEYS[10] -- prefix: one hash of figures per 10 s
local wake = KEYS[11] -- list: wake token
local lines = KEYS[12] -- prefix: of the keys of the partition
local bundles = KEYS[13] -- hash: token -> packed ids and places
local bundled = KEYS[14] -- hash: token -> jobs still in the bundle
local given_now = ARGV[1] -- ms, '' = the server's clock
local attempts_kept = tonumber(ARGV[2]) -- attempts kept per job
local limit = tonumber(ARGV[3]) -- most jobs to take back
local lease_ms = tonumber(ARGV[4]) -- length of a lease
local elapsed = ARGV[5] -- ms since the caller's own last call by its own clock, '' = its first

local LOST_LIMIT = 10
local CAP_MARGIN_MS = 500
local LEASE_EXPIRED = '{"type": "WorkerLost", "message": "The lease ran out: the worker died or was cut off.", "traceback": ""}'

local now = server_now(clock, given_now)

-- Since the caller's last call at most `elapsed` ms can have passed. More on the server's clock is a jump: nobody had
-- the time to renew, so everybody gets one lease of it.
local facts = redis.call('HMGET', control, 'recovered_at', 'hold_until', 'max_running')
local recovered_at, hold_until = tonumber(facts[1] or 0), tonumber(facts[2] or 0)
if elapsed ~= '' and recovered_at > 0 and now - recovered_at > tonumber(elapsed) + lease_ms then
  hold_until = now + lease_ms
  redis.call('HSET', control, 'hold_until', hold_until, 'clock_alarm', now)
end
redis.call('HSET', control, 'recovered_at', now)

-- Where only so many may run, the place of a lost lease is free a moment later: a worker that was merely cut off has told
-- its handlers to stop by then.
local margin = facts[3] and CAP_MARGIN_MS or 0

local function next_deadline()
  local head = redis.call('ZRANGE', leased, 0, 0, 'WITHSCORES')
  return head[2] and math.floor(tonumber(head[2])) + margin or ''
end

if now < hold_until then
  return { now, 0, 0, 0, next_deadline(), '1' }
end

local keys = {
  leased = leased,
  ready = ready,
  dead = dead,
  cancelled = cancelled,
  states = states,
  bodies = bodies,
  attempts = attempts,
  live = live,
  lines = lines,
  bundles = bundles,
  bundled = bundled,
}

-- The first jobs whose lease ran out. Bundles among them are opened until there are enough: then their jobs have leases
-- of their own, which those that are not taken now keep.
local function expired_jobs()
  local found, overdue = {}, string.format('%.0f', now - margin)
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', leased, '-inf', overdue, 'LIMIT', 0, limit)) do
    local token = string.match(member, '^\n(.*)$')
    for _, id in ipairs(token and open_bundle(keys, token) or { member }) do
      found[#found + 1] = #found < limit and id or nil
    end
    if #found == limit then
      break
    end
  end
  return found
end

local charged, handed_back, buried = 0, 0, {}
for _, id in ipairs(expired_jobs()) do
  local record = read_record(redis.call('HGET', states, id), 'leased')
  if not record then
    record = read_record(nil, 'leased') -- unreadable: the next lease buries it if the body is bad too
  end
  if record[STATE] ~= 'leased' then
    redis.call('ZREM', leased, id)
  elseif record[STARTED_AT] == 0 and record[LOST] + 1 < LOST_LIMIT then
    record[LOST], record[ATTEMPT] = record[LOST] + 1, math.max(0, record[ATTEMPT] - 1)
    hand_back(id, record, now, keys)
    handed_back = handed_back + 1
  else
    local state = charge_crash(id, record, now, LEASE_EXPIRED, keys, attempts_kept)
    charged = charged + 1
    if state == 'dead' then
      buried[#buried + 1] = id
    end
  end
end
if charged + handed_back > 0 then
  wake_one(wake)
end
return { now, charged, handed_back, #buried, next_deadline(), '', unpack(buried) }
