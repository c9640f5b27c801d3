-- Registers workers or proves them alive, and notes when a release was first seen; forgets those that were gone for an
-- hour.
-- Reply: the pause of the host or '', 1 if the host was known, then for each worker the command left for it, or ''; given
-- again until the worker says that it has it
local workers = KEYS[1] -- hash: worker id -> packed facts
local alive = KEYS[2] -- zset: worker id -> counted as gone from then on
local commands = KEYS[3] -- hash: worker id -> drain | stop
local releases = KEYS[4] -- zset: version -> first told of, ms
local pauses = KEYS[5] -- hash: host id -> pause
local given_now = ARGV[1] -- ms, '' = the server's clock
local ttl = tonumber(ARGV[2]) -- ms without a beat after which a worker counts as gone
local release = ARGV[3] -- version of the code that these run, '' = none is told
local host = ARGV[4] -- host id of all of them
local items = 5 -- ARGV[5..]: worker id, packed facts, '1' if it obeys its command by now

local FORGET_MS = 3600000
local RELEASES_KEPT = 50

local now = tonumber(given_now)
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local reply = { redis.call('HGET', pauses, host) or '', redis.call('HEXISTS', workers, host) }
for i = 1, (#ARGV - items + 1) / 3 do
  local at = items + 3 * (i - 1)
  local id = ARGV[at]
  redis.call('HSET', workers, id, ARGV[at + 1])
  redis.call('ZADD', alive, now + ttl, id)
  if ARGV[at + 2] == '1' then
    redis.call('HDEL', commands, id)
  end
  reply[i + 2] = redis.call('HGET', commands, id) or ''
end
if release ~= '' and redis.call('ZADD', releases, 'NX', now, release) == 1 then
  redis.call('ZREMRANGEBYRANK', releases, 0, -RELEASES_KEPT - 1)
end
for _, id in ipairs(redis.call('ZRANGEBYSCORE', alive, '-inf', string.format('%.0f', now - FORGET_MS), 'LIMIT', 0, 100)) do
  redis.call('ZREM', alive, id)
  redis.call('HDEL', workers, id)
  redis.call('HDEL', commands, id)
  redis.call('HDEL', pauses, id)
end
return reply
