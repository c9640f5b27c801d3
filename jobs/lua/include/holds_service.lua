-- Whether the right to this service is held under this token now.
local function holds_service(services_key, service, token, given_now)
  local now = tonumber(given_now)
  if not now then
    local time = redis.call('TIME')
    now = time[1] * 1000 + math.floor(time[2] / 1000)
  end
  local ok, held = pcall(cmsgpack.unpack, redis.call('HGET', services_key, service) or '')
  return ok and type(held) == 'table' and held[2] == token and tonumber(held[3]) and held[3] > now
end
