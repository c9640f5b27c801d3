-- Sets jobs aside that a limit of their type holds back; nothing is charged.
-- State: leased -> ready (throttled) | cancelled (it was asked to stop)
-- Reply: for each job its order among those that wait for the same key and its place; '' and '' where it does not wait
-- #include record_fields
-- #include server_now
-- #include read_record
-- #include pack_record
-- #include read_header
-- #include held_record
-- #include tally
-- #include tell_runs
-- #include hand_back
-- #include record_bytes
-- #include bundle_of
-- #include leave_bundle
-- #include read_bundle
-- #include untie
-- #include untie_items
local clock = KEYS[1] -- string: high-water mark of server time
local leased = KEYS[2] -- zset: id, or line break and token of a bundle -> lease deadline
local cancelled = KEYS[3] -- zset: id -> end
local throttled = KEYS[4] -- zset: id -> place
local states = KEYS[5] -- hash: id -> record
local bodies = KEYS[6] -- hash: id -> body
local live = KEYS[7] -- prefix: one hash of figures per 10 s
local lines = KEYS[8] -- prefix: of the keys of the partition
local bundles = KEYS[9] -- hash: token -> packed ids and places
local bundled = KEYS[10] -- hash: token -> jobs still in the bundle
local given_now = ARGV[1] -- ms, '' = the server's clock
local items = 2 -- ARGV[2..]: id, token

local PLACES = 17592186044416 -- of one priority, see ready_place

-- Priority first, then since when it is ready: that also compares jobs of different pools, which places do not.
local function order_of(id, record)
  local since = record[READY_AT]
  local body = since == 0 and redis.call('HGET', bodies, id)
  if body and #body >= 16 then
    since = math.max(struct.unpack('>d', body), struct.unpack('>d', body, 9))
  end
  return string.format('%.0f', math.floor(tonumber(record[PLACE]) / PLACES) * PLACES + since)
end

local keys = { leased = leased, ready = throttled, cancelled = cancelled, states = states, bodies = bodies, live = live }
keys.lines, keys.bundles, keys.bundled = lines, bundles, bundled
local now = server_now(clock, given_now)
local reply = {}
untie_items(keys, items, 2)
for i = 1, (#ARGV - items + 1) / 2 do
  local id, token = ARGV[2 * i], ARGV[2 * i + 1]
  local record = held_record(redis.call('HGET', states, id), token)
  local order, place = '', ''
  if record then
    record[ATTEMPT] = record[ATTEMPT] - 1
    if hand_back(id, record, now, keys) == 'ready' then
      order, place = order_of(id, record), string.format('%016.0f', tonumber(record[PLACE]))
    end
  end
  reply[2 * i - 1], reply[2 * i] = order, place
end
return reply
