-- Gives waiting jobs another priority. Each keeps its place by arrival among those of its new priority.
-- State: ready -> ready, scheduled -> scheduled, retry_wait -> retry_wait
-- Reply: for each job "ok", "JOB_NOT_FOUND", or the state that does not allow it
-- #include record_fields
-- #include read_record
-- #include pack_record
-- #include read_header
-- #include due_score
-- #include with_priority
local bodies = KEYS[1] -- hash: id -> body
local states = KEYS[2] -- hash: id -> record
local scheduled = KEYS[3] -- zset: id -> due score
local retry_wait = KEYS[4] -- zset: id -> due score
local ready = KEYS[5] -- zset: id -> place
local throttled = KEYS[6] -- zset: id -> place
local parked_of = KEYS[7] -- prefix: one zset per parked type, and per paused run (after a line break)
local priority = tonumber(ARGV[1]) -- -100..100
local items = 2 -- ARGV[2..]: id

local FORMAT = 1 -- of a body: of a newer one nobody knows where its priority stands
local PLACES = 17592186044416 -- of one priority, see ready_place

-- The line that the job stands in, and the score that it gets there.
local function new_score(id, header)
  for _, line in ipairs({ scheduled, retry_wait }) do
    local score = redis.call('ZSCORE', line, id)
    if score then
      return line, due_score(math.floor(tonumber(score)), priority)
    end
  end
  local run = type(header[8]) == 'table' and header[8].workflow_run or ''
  for _, line in ipairs({ ready, throttled, parked_of .. header[2], parked_of .. '\n' .. run }) do
    local score = redis.call('ZSCORE', line, id)
    if score then
      return line, (100 - priority) * PLACES + tonumber(score) % PLACES
    end
  end
  return nil
end

local function prioritize_one(id)
  local raw, body = redis.call('HGET', states, id), redis.call('HGET', bodies, id)
  if not raw and (not body or body == '') then
    return 'JOB_NOT_FOUND'
  end
  local record, header = read_record(raw, 'ready'), read_header(body)
  if not record or not header or header[1] ~= FORMAT then
    return 'unreadable'
  end
  local line, score = new_score(id, header)
  if not line then
    return record[STATE]
  end
  local written = string.format('%.17g', score)
  redis.call('HSET', bodies, id, with_priority(body, priority))
  redis.call('ZADD', line, written, id)
  if raw and line ~= scheduled and line ~= retry_wait then
    record[PLACE] = string.format('%d', score)
    redis.call('HSET', states, id, pack_record(record))
  end
  return 'ok'
end

local reply = {}
for i = items, #ARGV do
  reply[#reply + 1] = prioritize_one(ARGV[i])
end
return reply
