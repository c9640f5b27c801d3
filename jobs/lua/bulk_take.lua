-- Claims the part of a bulk operation that comes next: a stretch of the list to be looked through, or jobs to be acted on.
-- A claim that lapsed was a host's that died: its part is handed out again, and said to be.
-- Reply: id, "1" where the part may have been done before, facts as a flat list, packed ids of the part; or '', ms until
-- the next is due ('' = none)
-- #include server_now
local clock = KEYS[1] -- string: high-water mark of server time
local due = KEYS[2] -- zset: operation -> when to go on with it
local facts_of = KEYS[3] -- prefix: one hash of facts per operation
local items_of = KEYS[4] -- prefix: one hash per operation, number of a part -> packed ids
local given_now = ARGV[1] -- ms, '' = the server's clock
local wanted = ARGV[2] -- only this operation, '' = any
local token = ARGV[3] -- of the claim
local hold_ms = tonumber(ARGV[4]) -- how long a claim lasts

local now = server_now(clock, given_now)
local candidates = wanted ~= '' and { wanted } or redis.call('ZRANGEBYSCORE', due, '-inf', now, 'LIMIT', 0, 20)
local soonest = math.huge
for _, id in ipairs(candidates) do
  local facts = facts_of .. id
  local at = tonumber(redis.call('ZSCORE', due, id) or '')
  local held = redis.call('HMGET', facts, 'claim', 'claim_until', 'next')
  local lapsed = held[1] and held[1] ~= ''
  if at and at > now then
    soonest = math.min(soonest, at)
  elseif at and lapsed and tonumber(held[2]) > now and tonumber(held[2]) - now <= hold_ms then
    soonest = math.min(soonest, tonumber(held[2]))
  elseif at then
    redis.call('HSET', facts, 'claim', token, 'claim_until', now + hold_ms)
    local items = redis.call('HGET', items_of .. id, held[3] or '0') or ''
    return { id, lapsed and '1' or '', redis.call('HGETALL', facts), items }
  end
end
local next_due = redis.call('ZRANGE', due, 0, 0, 'WITHSCORES')[2]
if next_due and tonumber(next_due) > now then
  soonest = math.min(soonest, tonumber(next_due))
end
return { '', soonest < math.huge and string.format('%d', soonest - now) or '' }
