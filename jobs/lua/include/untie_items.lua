-- Unties the jobs among the arguments of a script, whose ids stand `step` apart from `first` on. Where there is no bundle
-- this is one look for a key that is not there. Needs: untie.
local function untie_items(keys, first, step)
  if redis.call('EXISTS', keys.bundled) == 0 then
    return
  end
  local ids = {}
  for at = first, #ARGV, step do
    ids[#ids + 1] = ARGV[at]
  end
  untie(keys, ids)
end
