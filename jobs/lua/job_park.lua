-- Sets jobs aside that this worker may not run (unknown or disabled type); nothing is charged.
-- State: leased -> ready (parked) | cancelled (it was asked to stop)
-- Reply: for each job the state it is in now, or "lost"; then the types of which nothing was parked before
-- #include record_fields
-- #include server_now
-- #include read_record
-- #include pack_record
-- #include held_record
-- #include tally
-- #include tell_runs
-- #include record_bytes
-- #include bundle_of
-- #include leave_bundle
-- #include read_bundle
-- #include untie
-- #include untie_items
local clock = KEYS[1] -- string: high-water mark of server time
local leased = KEYS[2] -- zset: id, or line break and token of a bundle -> lease deadline
local cancelled = KEYS[3] -- zset: id -> end
local states = KEYS[4] -- hash: id -> record
local parked = KEYS[5] -- hash: type -> parked jobs
local parked_of = KEYS[6] -- prefix of one zset per parked type
local live = KEYS[7] -- prefix: one hash of figures per 10 s
local lines = KEYS[8] -- prefix: of the keys of the partition
local bundles = KEYS[9] -- hash: token -> packed ids and places
local bundled = KEYS[10] -- hash: token -> jobs still in the bundle
local given_now = ARGV[1] -- ms, '' = the server's clock
local items = 2 -- ARGV[2..]: id, token, type

local now = server_now(clock, given_now)
untie_items({ states = states, leased = leased, bundles = bundles, bundled = bundled }, items, 3)
local reply, begun = {}, {}
for i = 1, (#ARGV - 1) / 3 do
  local id, token, type = ARGV[3 * i - 1], ARGV[3 * i], ARGV[3 * i + 1]
  local record = held_record(redis.call('HGET', states, id), token)
  if not record then
    reply[i] = 'lost'
  else
    redis.call('ZREM', leased, id)
    record[ATTEMPT], record[STARTED_AT] = record[ATTEMPT] - 1, 0
    if record[CANCEL] == 1 then
      record[STATE], record[FINISHED_AT] = 'cancelled', now
      redis.call('ZADD', cancelled, now, id)
      tally(live, now, 'cancelled', type, 1)
    else
      record[STATE], record[TOKEN] = 'ready', ''
      redis.call('ZADD', parked_of .. type, record[PLACE], id)
      if redis.call('HINCRBY', parked, type, 1) == 1 then
        begun[#begun + 1] = type
      end
    end
    local packed = pack_record(record)
    redis.call('HSET', states, id, packed)
    if record[STATE] == 'cancelled' then
      tell_runs(lines, { id, packed })
    end
    reply[i] = record[STATE]
  end
end
for _, type in ipairs(begun) do
  reply[#reply + 1] = type
end
return reply
