-- Creates jobs of one type with the same options.
-- Checks its keys itself.
-- State: (none) -> ready | scheduled
-- Brings work.
-- Errors: POOL_FULL (nothing was created); an id that is taken or voided is named in the reply, the others are created
-- Reply: now, due, then position and "taken" | "voided:<void>" for each job that was not created
-- #include server_now
-- #include ready_place
-- #include due_score
-- #include tally
local clock = KEYS[1] -- string: high-water mark of server time
local bodies = KEYS[2] -- hash: id -> body
local ready = KEYS[3] -- zset: id -> place
local scheduled = KEYS[4] -- zset: id -> due score
local voided = KEYS[5] -- zset: id -> when it was voided
local live = KEYS[6] -- prefix: one hash of figures per 10 s
local sequence = KEYS[7] -- string: last place given
local wake = KEYS[8] -- list: wake token
local lines = KEYS[9] -- prefix: of the lines of the partition
local given_now = ARGV[1] -- ms, '' = the server's clock
local check_ids = ARGV[2] -- '1': the ids may be taken (a caller's or a claimed id); '2': this call was sent before; '' neither
local type = ARGV[3] -- job type
local priority = tonumber(ARGV[4]) -- -100..100
local delay = tonumber(ARGV[5]) -- ms from now
local run_at = ARGV[6] -- ms, '' = now + delay
local void_seen = ARGV[7] -- the void of an id that the caller has seen and may overwrite, '' = none
local max_pending = tonumber(ARGV[8]) -- most jobs that may wait here after this, '' = any number
local header = ARGV[9] -- what each body has after its times, '' = they have nothing in common
local items = 10 -- ARGV[10..]: id, the rest of the body

local now = server_now(clock, given_now)
local due = run_at == '' and now + delay or tonumber(run_at)
local beginning = struct.pack('>dd', now, due) .. header

local reply = { now, due }
local total = (#ARGV - items + 1) / 2
local refused, unvoided = {}, {}
if check_ids ~= '' then
  local ids = {}
  for i = 1, total do
    ids[i] = ARGV[items + 2 * i - 2]
  end
  for i, body in ipairs(redis.call('HMGET', bodies, unpack(ids))) do
    if body == '' then
      local void = redis.call('ZSCORE', voided, ids[i]) or '0'
      if void ~= void_seen then
        refused[i] = 'voided:' .. void
      else
        unvoided[#unvoided + 1] = ids[i]
      end
    elseif body then
      local is_ours = check_ids == '2' and string.sub(body, 17) == header .. ARGV[items + 2 * i - 1]
      refused[i] = is_ours and 'created before' or 'taken'
    end
    if refused[i] and refused[i] ~= 'created before' then
      reply[#reply + 1] = i
      reply[#reply + 1] = refused[i]
    end
  end
end

local is_due = due <= now
local created_count, duplicates = total, 0
for _, reason in pairs(refused) do
  created_count = created_count - 1
  if reason == 'taken' then
    duplicates = duplicates + 1
  end
end
if max_pending and created_count > 0 then
  local pending = 0
  for _, line in ipairs({ 'ready', 'throttled', 'scheduled', 'retry_wait' }) do
    pending = pending + redis.call('ZCARD', lines .. line)
  end
  for _, number in ipairs(redis.call('HVALS', lines .. 'parked')) do
    pending = pending + (tonumber(number) or 0)
  end
  if pending + created_count > max_pending then
    return redis.error_reply('POOL_FULL ' .. pending .. ' jobs wait')
  end
end
local place, is_quiet
if created_count > 0 then -- all that is written below, and not read above, is looked at or written first
  redis.call('ZCARD', is_due and ready or scheduled)
  is_quiet = redis.call('LLEN', wake) == 0
  place = is_due and redis.call('INCRBY', sequence, created_count) - created_count
end
if unvoided[1] then
  redis.call('ZREM', voided, unpack(unvoided))
end
if duplicates > 0 then
  tally(live, now, 'duplicates', type, duplicates)
end
if created_count == 0 then
  return reply
end
local score = not is_due and due_score(due, priority)
local created, index, given, last = {}, {}, ARGV, 0 -- locals are fast
for i = 1, total do
  if not refused[i] then
    local id, rest = given[items + 2 * i - 2], given[items + 2 * i - 1]
    if place then
      place = place + 1
      score = ready_place(priority, place)
    end
    created[last + 1], created[last + 2] = id, beginning .. rest
    index[last + 1], index[last + 2] = score, id
    last = last + 2
  end
end
redis.call('HSET', bodies, unpack(created))
redis.call('ZADD', is_due and ready or scheduled, unpack(index))
-- One who waits is woken for a job that is ready, and must learn of one that is due before all it knows of.
if is_quiet and (is_due or math.floor(tonumber(redis.call('ZRANGE', scheduled, 0, 0, 'WITHSCORES')[2])) >= due) then
  redis.call('RPUSH', wake, '1')
end
tally(live, now, 'enqueued', type, created_count)
return reply
