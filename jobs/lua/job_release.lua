-- Hands leased jobs back, at their old place in line.
-- State: leased -> ready | cancelled (it was asked to stop)
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
local cancelled = KEYS[4] -- zset: id -> end
local states = KEYS[5] -- hash: id -> record
local attempts = KEYS[6] -- hash: id -> ended attempts
local bodies = KEYS[7] -- hash: id -> body
local live = KEYS[8] -- prefix: one hash of figures per 10 s
local wake = KEYS[9] -- list: wake token
local lines = KEYS[10] -- prefix: of the keys of the partition
local bundles = KEYS[11] -- hash: token -> packed ids and places
local bundled = KEYS[12] -- hash: token -> jobs still in the bundle
local given_now = ARGV[1] -- ms, '' = the server's clock
local charged = ARGV[2] -- '1': the attempt had begun and counts
local attempts_kept = tonumber(ARGV[3]) -- attempts kept per job
local items = 4 -- ARGV[4..]: id, token

local keys = { leased = leased, ready = ready, cancelled = cancelled, states = states, bodies = bodies, live = live }
keys.lines, keys.bundles, keys.bundled = lines, bundles, bundled
local now = server_now(clock, given_now)
local reply = {}
untie_items(keys, items, 2)
for i = 1, (#ARGV - 3) / 2 do
  local id, token = ARGV[2 * i + 2], ARGV[2 * i + 3]
  local record = held_record(redis.call('HGET', states, id), token)
  if not record then
    reply[i] = 'lost'
  else
    if charged == '1' then
      append_attempt(attempts, id, record, now, 'released', false, attempts_kept)
      local header = read_header(redis.call('HGET', bodies, id))
      tally(live, now, 'released', header and header[2] or '', 1)
    else
      record[ATTEMPT] = record[ATTEMPT] - 1
    end
    reply[i] = hand_back(id, record, now, keys)
  end
end
if redis.call('ZCARD', ready) > 0 then
  wake_one(wake)
end
return reply
