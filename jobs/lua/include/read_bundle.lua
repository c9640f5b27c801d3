-- What a bundle keeps: the ids of its jobs in their order, id -> place, and whether it could be read.
local function places_in(packed, token, ids, places)
  local grant = cmsgpack.unpack(packed)
  assert(grant[1] == token)
  for position = 2, #grant do
    local line = grant[position]
    for at = 1, #line, 2 do
      ids[#ids + 1], places[line[at]] = line[at], line[at + 1]
    end
  end
end

local function read_bundle(keys, token)
  local ids, places = {}, {}
  local is_whole = pcall(places_in, redis.call('HGET', keys.bundles, token), token, ids, places)
  return ids, places, is_whole
end
