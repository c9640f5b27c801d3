-- Unties the jobs among the arguments of a script: id, token and more, each `step` behind the one before, from `first` on.
-- Where there is no bundle this is one look for keys that are not there. Needs: untie.
local function untie_items(keys, first, step)
  if redis.call('EXISTS', keys.bundled, keys.bundles) == 0 then
    return
  end
  local ids, tokens = {}, {}
  for at = first, #ARGV, step do
    ids[#ids + 1], tokens[#tokens + 1] = ARGV[at], ARGV[at + 1]
  end
  untie(keys, ids, tokens)
end
