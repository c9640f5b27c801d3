-- Stores how far running jobs are.
-- State: leased -> leased
-- Reply: for each job "ok" or "lost"
-- #include record_fields
-- #include server_now
-- #include read_record
-- #include held_record
local clock = KEYS[1] -- string: high-water mark of server time
local states = KEYS[2] -- hash: id -> record
local progress = KEYS[3] -- hash: id -> time, progress
local given_now = ARGV[1] -- ms, '' = the server's clock
local items = 2 -- ARGV[2..]: id, token, MessagePack of current, total, message

local now = struct.pack('>I8', server_now(clock, given_now))
local reply = {}
for i = items, #ARGV, 3 do
  local id = ARGV[i]
  local is_held = held_record(redis.call('HGET', states, id), ARGV[i + 1])
  if is_held then
    redis.call('HSET', progress, id, now .. ARGV[i + 2])
  end
  reply[#reply + 1] = is_held and 'ok' or 'lost'
end
return reply
