-- So many jobs of a bundle have ended, or have a lease of their own now. After the last the bundle goes. Where the count
-- is no count any more, nobody knows which was the last, and the bundle goes when its lease is over.
local function leave_bundle(keys, token, number)
  local left = redis.pcall('HINCRBY', keys.bundled, token, -number)
  if left == 0 then
    redis.call('HDEL', keys.bundles, token)
    redis.call('ZREM', keys.leased, '\n' .. token)
  end
  if type(left) ~= 'number' or left <= 0 then
    redis.call('HDEL', keys.bundled, token)
  end
end
