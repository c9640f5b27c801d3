-- Takes schedules that are due. A claim that lapses makes its schedule due again; claims are counted, and the time of the
-- first is kept. Nothing is taken where less has happened than the caller knows of: the store was put back or emptied.
-- Reply: now, sequence, when the next is due or '', begin and end of the last jump; then name, state, definition, number
-- of the claim and time of the first, for each
-- #include server_now
local clock = KEYS[1] -- string: high-water mark of server time
local due = KEYS[2] -- zset: name -> when to look at it next (ms)
local states = KEYS[3] -- hash: name -> packed state
local definitions = KEYS[4] -- hash: name -> packed definition
local claims = KEYS[5] -- hash: name -> number, time of the first and token of the claim
local control = KEYS[6] -- hash: sequence, fired_until, the last jump, the pulse of the definitions
local given_now = ARGV[1] -- ms, '' = the server's clock
local token = ARGV[2] -- who takes
local claim_ms = tonumber(ARGV[3]) -- how long a claim lasts
local limit = tonumber(ARGV[4]) -- at most so many
local known_sequence = tonumber(ARGV[5]) -- the highest that the caller has seen

local now = server_now(clock, given_now)
local facts = redis.call('HMGET', control, 'sequence', 'jump_from', 'jump_until')
local sequence = tonumber(facts[1] or 0)
local reply = { now, sequence, '', tonumber(facts[2] or 0), tonumber(facts[3] or 0) }
if sequence >= known_sequence then
  for _, name in ipairs(redis.call('ZRANGEBYSCORE', due, '-inf', now, 'LIMIT', 0, limit)) do
    local number, first = string.match(redis.call('HGET', claims, name) or '', '^(%d+):(%d+):')
    number, first = tonumber(number or 0) + 1, tonumber(first or now)
    redis.call('HSET', claims, name, string.format('%d:%d:%s', number, first, token))
    redis.call('ZADD', due, now + claim_ms, name)
    reply[#reply + 1] = name
    reply[#reply + 1] = redis.call('HGET', states, name) or ''
    reply[#reply + 1] = redis.call('HGET', definitions, name) or ''
    reply[#reply + 1] = number
    reply[#reply + 1] = first
  end
end
local head = redis.call('ZRANGE', due, 0, 0, 'WITHSCORES')
reply[3] = head[2] and math.ceil(tonumber(head[2])) or ''
return reply
