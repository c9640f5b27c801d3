-- Marks leased jobs as really started: from then on the death of their worker is charged to them.
-- State: leased -> leased
-- Reply: how many were marked
-- #include record_fields
-- #include read_record
-- #include pack_record
-- #include held_record
-- #include record_bytes
-- #include bundle_of
-- #include leave_bundle
-- #include read_bundle
-- #include untie
-- #include untie_items
local states = KEYS[1] -- hash: id -> record
local leased = KEYS[2] -- zset: id, or line break and token of a bundle -> lease deadline
local bundles = KEYS[3] -- hash: token -> packed ids and places
local bundled = KEYS[4] -- hash: token -> jobs still in the bundle
local items = 1 -- ARGV[1..]: id, token, started_at

untie_items({ states = states, leased = leased, bundles = bundles, bundled = bundled }, items, 3)
local ids = {}
for i = 1, #ARGV / 3 do
  ids[i] = ARGV[3 * i - 2]
end
local changed = {}
for i, raw in ipairs(redis.call('HMGET', states, unpack(ids))) do
  local record = held_record(raw, ARGV[3 * i - 1])
  if record then
    record[STARTED_AT], record[LOST] = tonumber(ARGV[3 * i]), 0
    changed[#changed + 1] = ids[i]
    changed[#changed + 1] = pack_record(record)
  end
end
if changed[1] then
  redis.call('HSET', states, unpack(changed))
end
return #changed / 2
