-- Which of these jobs were handed out and have not begun: a pause waits until there is none.
-- Reads only.
-- Reply: server time, then id and lease deadline (ms) of each
-- #include record_fields
-- #include read_record
-- #include record_bytes
-- #include bundle_of
-- #include read_header
local leased = KEYS[1] -- zset: id, or line break and token of a bundle -> lease deadline
local states = KEYS[2] -- hash: id -> record
local bodies = KEYS[3] -- hash: id -> body
local given_now = ARGV[1] -- ms, '' = the server's clock
local type = ARGV[2] -- only jobs of this type, '' = any
local items = 3 -- ARGV[3..]: id

local now = tonumber(given_now)
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local ids = {}
for i = 3, #ARGV do
  ids[i - 2] = ARGV[i]
end
local reply = { now }
for i, raw in ipairs(redis.call('HMGET', states, unpack(ids))) do
  local record = raw and read_record(raw, '')
  if record and record[STATE] == 'leased' and record[STARTED_AT] == 0 then
    local header = type ~= '' and read_header(redis.call('HGET', bodies, ids[i]))
    local token = bundle_of(raw)
    local deadline = redis.call('ZSCORE', leased, token and '\n' .. token or ids[i])
    if deadline and (type == '' or (header and header[2] == type)) then
      reply[#reply + 1] = ids[i]
      reply[#reply + 1] = tonumber(deadline)
    end
  end
end
return reply
