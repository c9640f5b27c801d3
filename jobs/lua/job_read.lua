-- Reads jobs whole, each at one moment.
-- Reads only.
-- Reply: for each job body, record, state of an untouched one, lease deadline, attempts, result, progress, "1" if in the ready line, "throttled" if set aside
-- #include record_fields
-- #include record_bytes
-- #include bundle_of
local bodies = KEYS[1] -- hash: id -> body
local states = KEYS[2] -- hash: id -> record
local scheduled = KEYS[3] -- zset: id -> due score
local ready = KEYS[4] -- zset: id -> place
local leased = KEYS[5] -- zset: id, or line break and token of a bundle -> lease deadline
local attempts = KEYS[6] -- hash: id -> ended attempts
local results = KEYS[7] -- hash: id -> JSON
local progress = KEYS[8] -- hash: id -> progress
local throttled = KEYS[9] -- zset: id -> place
local items = 1 -- ARGV[1..]: id

local body, ended, result, told = {}, {}, {}, {}
if #ARGV > 0 then
  body, ended = redis.call('HMGET', bodies, unpack(ARGV)), redis.call('HMGET', attempts, unpack(ARGV))
  result, told = redis.call('HMGET', results, unpack(ARGV)), redis.call('HMGET', progress, unpack(ARGV))
end
local reply = {}
for i, id in ipairs(ARGV) do
  local raw = redis.call('HGET', states, id)
  local waiting, line = '', redis.call('ZSCORE', ready, id) and '1' or (redis.call('ZSCORE', throttled, id) and 'throttled' or '')
  if not raw then
    waiting = redis.call('ZSCORE', scheduled, id) and 'scheduled' or (line ~= '' and 'ready' or '')
  end
  local token = raw and bundle_of(raw)
  reply[i] = {
    body[i],
    raw,
    waiting,
    redis.call('ZSCORE', leased, token and '\n' .. token or id),
    ended[i],
    result[i],
    told[i],
    line,
  }
end
return reply
