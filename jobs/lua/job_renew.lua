-- Moves the deadline of leases that are still held.
-- State: leased -> leased
-- Reply: now, then for each job "held" | "cancel" (held, but asked to stop) | "ended" (under this token) | "lost"
-- #include record_fields
-- #include server_now
-- #include read_record
-- #include record_bytes
-- #include bundle_of
-- #include leave_bundle
-- #include read_bundle
-- #include untie
local clock = KEYS[1] -- string: high-water mark of server time
local states = KEYS[2] -- hash: id -> record
local leased = KEYS[3] -- zset: id, or line break and token of a bundle -> lease deadline
local bundles = KEYS[4] -- hash: token -> packed ids and places
local bundled = KEYS[5] -- hash: token -> jobs still in the bundle
local given_now = ARGV[1] -- ms, '' = the server's clock
local lease_ms = tonumber(ARGV[2]) -- length of the lease
local items = 3 -- ARGV[3..]: id, token

local now = server_now(clock, given_now)
local ids = {}
for i = 1, (#ARGV - 2) / 2 do
  ids[i] = ARGV[2 * i + 1]
end
local reply, deadlines, tied, seen = { now }, {}, {}, {}
local deadline = string.format('%.0f', now + lease_ms)
for i, raw in ipairs(redis.call('HMGET', states, unpack(ids))) do
  local record = raw and read_record(raw, '')
  if not record or record[TOKEN] ~= ARGV[2 * i + 2] then
    reply[1 + i] = 'lost'
  elseif record[STATE] == 'leased' then
    reply[1 + i] = record[CANCEL] == 1 and 'cancel' or 'held'
    local token = bundle_of(raw)
    if token and not seen[ids[i]] then
      tied[token] = tied[token] or {}
      table.insert(tied[token], ids[i])
      seen[ids[i]] = true
    elseif not token then
      deadlines[#deadlines + 1] = deadline
      deadlines[#deadlines + 1] = ids[i]
    end
  else
    reply[1 + i] = 'ended'
  end
end
-- A bundle is renewed as one; where it is not asked for as a whole, those that are get leases of their own.
local keys = { states = states, leased = leased, bundles = bundles, bundled = bundled }
for token, jobs in pairs(tied) do
  if #jobs == tonumber(redis.call('HGET', bundled, token) or nil) then
    deadlines[#deadlines + 1] = deadline
    deadlines[#deadlines + 1] = '\n' .. token
  else
    untie(keys, jobs)
    for _, id in ipairs(jobs) do
      deadlines[#deadlines + 1] = deadline
      deadlines[#deadlines + 1] = id
    end
  end
end
if deadlines[1] then
  redis.call('ZADD', leased, 'XX', unpack(deadlines))
end
return reply
