-- Makes a waiting job ready before its time.
-- State: scheduled -> ready, retry_wait -> ready
-- Errors: JOB_NOT_FOUND, WRONG_STATE (it does not wait for a time)
-- #include record_fields
-- #include server_now
-- #include read_record
-- #include pack_record
-- #include ready_place
-- #include wake_one
local clock = KEYS[1] -- string: high-water mark of server time
local bodies = KEYS[2] -- hash: id -> body
local states = KEYS[3] -- hash: id -> record
local scheduled = KEYS[4] -- zset: id -> due score
local retry_wait = KEYS[5] -- zset: id -> due score
local ready = KEYS[6] -- zset: id -> place
local sequence = KEYS[7] -- string: last place given
local wake = KEYS[8] -- list: wake token
local given_now = ARGV[1] -- ms, '' = the server's clock
local id = ARGV[2] -- job id

local raw = redis.call('HGET', states, id)
if not raw and redis.call('HSTRLEN', bodies, id) == 0 then
  return redis.error_reply('JOB_NOT_FOUND ' .. 'no such job')
end
local record = read_record(raw, 'ready')
local line = redis.call('ZSCORE', scheduled, id) and scheduled or retry_wait
local score = tonumber(redis.call('ZSCORE', line, id) or nil)
if not record or not score then
  return redis.error_reply('WRONG_STATE ' .. (record and record[STATE] or 'unreadable'))
end
local now = server_now(clock, given_now)
local priority = 100 - (score - math.floor(score)) * 256
local place = ready_place(priority, redis.call('INCR', sequence))
record[STATE], record[READY_AT], record[PLACE] = 'ready', now, place
redis.call('ZREM', line, id)
redis.call('ZADD', ready, place, id)
redis.call('HSET', states, id, pack_record(record))
wake_one(wake)
return 'ready'
