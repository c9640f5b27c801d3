-- Makes the caller the keeper of the definitions for a while, unless another one is. Each keeper leaves a new pulse, by
-- which it sees at its next call whether this is still the store that it knows.
-- Reply: 1 or 0 (held or not), 1 or 0 (the pulse that it knows is there or not), fired_until, how many
-- definitions there are
-- #include server_now
local clock = KEYS[1] -- string: high-water mark of server time
local control = KEYS[2] -- hash: keeper, kept_until, pulse, fired_until
local digests = KEYS[3] -- hash: name -> digest of the definition
local given_now = ARGV[1] -- ms, '' = the server's clock
local keeper = ARGV[2] -- who
local hold_ms = tonumber(ARGV[3]) -- for how long
local known_pulse = ARGV[4] -- the one that the caller left, '' = none
local pulse = ARGV[5] -- the new one

local now = server_now(clock, given_now)
local facts = redis.call('HMGET', control, 'keeper', 'kept_until', 'pulse', 'fired_until')
local fired_until, count = facts[4] or '0', redis.call('HLEN', digests)
local until_then = tonumber(facts[2] or 0)
-- A hold that reaches further than any is from before the clock was set back.
if facts[1] and facts[1] ~= keeper and now < until_then and until_then - now <= hold_ms then
  return { 0, 0, fired_until, count }
end
redis.call('HSET', control, 'keeper', keeper, 'kept_until', string.format('%d', now + hold_ms), 'pulse', pulse)
return { 1, facts[3] == known_pulse and 1 or 0, fired_until, count }
