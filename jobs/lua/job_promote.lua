-- Makes due jobs ready.
-- State: scheduled -> ready, retry_wait -> ready
-- Reply: now, how many, next due or ''
-- #include record_fields
-- #include server_now
-- #include read_record
-- #include pack_record
-- #include ready_place
-- #include promote_due
-- #include next_due
-- #include wake_one
local clock = KEYS[1] -- string: high-water mark of server time
local scheduled = KEYS[2] -- zset: id -> due score
local retry_wait = KEYS[3] -- zset: id -> due score
local ready = KEYS[4] -- zset: id -> place
local states = KEYS[5] -- hash: id -> record
local sequence = KEYS[6] -- string: last place given
local wake = KEYS[7] -- list: wake token
local given_now = ARGV[1] -- ms, '' = the server's clock
local limit = tonumber(ARGV[2]) -- most jobs to move from each line

local now = server_now(clock, given_now)
local promoted = promote_due(scheduled, ready, states, sequence, now, limit)
  + promote_due(retry_wait, ready, states, sequence, now, limit)
if promoted > 0 then
  wake_one(wake)
end
return { now, promoted, next_due(scheduled, retry_wait) }
