-- Gives the places of leases back that are over ("<job id>\n<token>"; without a token: calls that nobody will answer), once
-- each. Returns the keys that have a place more. Needs: limit_state.
local function give_places(fields, state)
  if not fields[1] then
    return {}
  end
  local only = state.only_key()
  if only then -- whose they were need not be looked up
    state.change_places(only, -redis.call('HDEL', state.keys.holders, unpack(fields)))
    return { only }
  end
  local given, freed, is_given, key_in, number = {}, {}, {}, {}, {}
  for i, holding in ipairs(redis.call('HMGET', state.keys.holders, unpack(fields))) do
    local field = fields[i]
    if holding and not is_given[field] then
      is_given[field] = true
      given[#given + 1] = field
      if not key_in[holding] then
        key_in[holding] = string.match(holding, '\n(.*)$') or ''
      end
      local key = key_in[holding]
      if not number[key] then
        freed[#freed + 1] = key
      end
      number[key] = (number[key] or 0) + 1
    end
  end
  if given[1] then
    redis.call('HDEL', state.keys.holders, unpack(given))
  end
  for key, count in pairs(number) do
    state.change_places(key, -count)
  end
  return freed
end
