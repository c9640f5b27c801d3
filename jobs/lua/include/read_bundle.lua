-- What a bundle keeps: the ids of its jobs in their order, none where it cannot be read, and id -> place.
local MOST_IDS = 2000 -- a lease call looks at fewer jobs

local function places_in(packed, token)
  local ids, places = {}, {}
  local grant = cmsgpack.unpack(packed)
  assert(grant[1] == token)
  for position = 2, #grant do
    local line = grant[position]
    for at = 1, #line, 2 do
      local id, place = line[at], line[at + 1]
      assert(type(id) == 'string' and type(place) == 'string' and #ids < MOST_IDS)
      ids[#ids + 1], places[id] = id, place
    end
  end
  return ids, places
end

local function read_bundle(keys, token)
  local is_whole, ids, places = pcall(places_in, redis.call('HGET', keys.bundles, token), token)
  if is_whole then
    return ids, places
  end
  return {}, {}
end
