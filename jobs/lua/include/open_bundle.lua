-- Gives the jobs of a bundle leases of their own, and returns their ids: also of those whose record was spoilt meanwhile,
-- as far as the count says that there are any. In a bundle that cannot be read the jobs are looked for among all records,
-- a stretch with each call. Needs: read_record, untie.
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

-- Those without a readable record and without a lease.
local function spoilt(keys, ids)
  local found = {}
  local leases = redis.call('ZMSCORE', keys.leased, unpack(ids))
  for i, raw in ipairs(redis.call('HMGET', keys.states, unpack(ids))) do
    if not leases[i] and not (raw and read_record(raw, '')) then
      found[#found + 1] = ids[i]
    end
  end
  return found
end

local function open_bundle(keys, token)
  local deadline = redis.call('ZSCORE', keys.leased, '\n' .. token)
  if not deadline then
    return {} -- its last job has ended meanwhile
  end
  local ids, _, is_over = read_bundle(keys, token)
  if not is_over then
    ids, is_over = find_tied(keys, token)
  end
  local opened = untie(keys, ids)
  if ids[1] and redis.call('HEXISTS', keys.bundled, token) == 1 then
    for _, id in ipairs(spoilt(keys, ids)) do
      redis.call('ZADD', keys.leased, deadline, id)
      opened[#opened + 1] = id
    end
  end
  if is_over then
    redis.call('HDEL', keys.bundles, token)
    redis.call('HDEL', keys.bundled, token)
    redis.call('ZREM', keys.leased, '\n' .. token)
  end
  return opened
end
