-- Gives the jobs of a bundle leases of their own, and returns their ids. Mostly its last job takes the bundle along. Where
-- anything of it went bad it is still there then: those whose record was spoilt get a lease too, and the rest is looked
-- for among all records, a stretch with each call. `keys` has the bodies too. Needs: read_record, untie.
local STRETCH = 5000

local function find_tied(keys, token)
  local searched = redis.call('HGET', keys.bundles, token)
  local cursor = searched and string.match(searched, '^searched (%d+)$') or '0'
  local reply = redis.call('HSCAN', keys.states, cursor, 'COUNT', STRETCH)
  local ids = {}
  for at = 1, #reply[2], 2 do
    if bundle_of(reply[2][at + 1]) == token then
      ids[#ids + 1] = reply[2][at]
    end
  end
  redis.call('HSET', keys.bundles, token, 'searched ' .. reply[1])
  return ids, reply[1] == '0'
end

-- Those jobs without a readable record and without a lease.
local function spoilt(keys, ids)
  local found = {}
  local leases = redis.call('ZMSCORE', keys.leased, unpack(ids))
  for i, raw in ipairs(redis.call('HMGET', keys.states, unpack(ids))) do
    local is_job = raw or redis.call('HSTRLEN', keys.bodies, ids[i]) > 0 -- or it has ended and is forgotten
    if is_job and not leases[i] and not (raw and read_record(raw, '')) then
      found[#found + 1] = ids[i]
    end
  end
  return found
end

-- Adds those to the `opened` that a bundle does not give away by itself.
local function search(keys, token, deadline, ids, opened)
  for _, id in ipairs(ids[1] and spoilt(keys, ids) or {}) do
    redis.call('ZADD', keys.leased, deadline, id)
    opened[#opened + 1] = id
  end
  local others, is_over = find_tied(keys, token)
  for _, id in ipairs(untie(keys, others)) do
    opened[#opened + 1] = id
  end
  if is_over then
    redis.call('HDEL', keys.bundles, token)
    redis.call('HDEL', keys.bundled, token)
    redis.call('ZREM', keys.leased, '\n' .. token)
  end
end

local function open_bundle(keys, token)
  local member = '\n' .. token
  local deadline = redis.call('ZSCORE', keys.leased, member)
  if not deadline then
    return {} -- its last job has ended meanwhile
  end
  local ids = read_bundle(keys, token)
  local opened = untie(keys, ids, token)
  if redis.call('ZSCORE', keys.leased, member) then
    search(keys, token, deadline, ids, opened)
  end
  return opened
end
