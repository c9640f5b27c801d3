-- Gives the places of leases back that are over ("<job id>\n<token>"; without a token: calls that nobody will answer), once
-- each. Returns the keys that have a place more. Needs: limit_state.
local function give_places(fields, state)
  if not fields[1] then
    return {}
  end
  local given, freed, is_given, is_freed = {}, {}, {}, {}
  for i, holding in ipairs(redis.call('HMGET', state.keys.holders, unpack(fields))) do
    if holding and not is_given[fields[i]] then
      local key = string.match(holding, '\n(.*)$') or ''
      is_given[fields[i]] = true
      given[#given + 1] = fields[i]
      state.change_places(key, -1)
      if not is_freed[key] then
        is_freed[key] = true
        freed[#freed + 1] = key
      end
    end
  end
  if given[1] then
    redis.call('HDEL', state.keys.holders, unpack(given))
  end
  return freed
end
