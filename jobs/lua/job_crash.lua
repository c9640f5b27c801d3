-- The worker process died while it ran these jobs: charged to their crash budget.
-- State: leased -> ready | dead | cancelled (it was asked to stop)
-- Reply: for each job the state it is in now, or "lost"
-- #include record_fields
-- #include server_now
-- #include read_record
-- #include pack_record
-- #include read_header
-- #include held_record
-- #include append_attempt
-- #include tally
-- #include tell_runs
-- #include hand_back
-- #include charge_crash
-- #include wake_one
-- #include record_bytes
-- #include bundle_of
-- #include leave_bundle
-- #include read_bundle
-- #include untie
-- #include untie_items
local clock = KEYS[1] -- string: high-water mark of server time
local leased = KEYS[2] -- zset: id, or line break and token of a bundle -> lease deadline
local ready = KEYS[3] -- zset: id -> place
local dead = KEYS[4] -- zset: id -> end
local cancelled = KEYS[5] -- zset: id -> end
local states = KEYS[6] -- hash: id -> record
local bodies = KEYS[7] -- hash: id -> body
local attempts = KEYS[8] -- hash: id -> ended attempts
local live = KEYS[9] -- prefix: one hash of figures per 10 s
local wake = KEYS[10] -- list: wake token
local lines = KEYS[11] -- prefix: of the keys of the partition
local bundles = KEYS[12] -- hash: token -> packed ids and places
local bundled = KEYS[13] -- hash: token -> jobs still in the bundle
local given_now = ARGV[1] -- ms, '' = the server's clock
local attempts_kept = tonumber(ARGV[2]) -- attempts kept per job
local failure = ARGV[3] -- error JSON that names how the process died
local items = 4 -- ARGV[4..]: id, token, started_at (ms)

local keys = {
  leased = leased,
  ready = ready,
  dead = dead,
  cancelled = cancelled,
  states = states,
  bodies = bodies,
  attempts = attempts,
  live = live,
  lines = lines,
  bundles = bundles,
  bundled = bundled,
}
local now = server_now(clock, given_now)
local reply = {}
untie_items(keys, items, 3)
for i = 1, (#ARGV - 3) / 3 do
  local id = ARGV[3 * i + 1]
  local record = held_record(redis.call('HGET', states, id), ARGV[3 * i + 2])
  if not record then
    reply[i] = 'lost'
  else
    record[STARTED_AT] = tonumber(ARGV[3 * i + 3])
    reply[i] = charge_crash(id, record, now, failure, keys, attempts_kept)
  end
end
if redis.call('ZCARD', ready) > 0 then
  wake_one(wake)
end
return reply
