-- Unties all jobs of a bundle and returns their ids. Of one that cannot be read the jobs are looked for among all records,
-- a stretch with each call. Needs: untie.
local STRETCH = 5000

local function find_jobs(keys, token)
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

local function open_bundle(keys, token)
  local ids, _, is_over = read_bundle(keys, token)
  if not is_over then
    ids, is_over = find_jobs(keys, token)
  end
  untie(keys, ids)
  if is_over then
    redis.call('HDEL', keys.bundles, token)
    redis.call('HDEL', keys.bundled, token)
    redis.call('ZREM', keys.leased, '\n' .. token)
  end
  return ids
end
