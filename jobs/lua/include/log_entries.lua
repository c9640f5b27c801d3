-- Which attempts of a job have lines: { attempt, lines, bytes, lines that are gone } each, oldest first.
local function log_entries(stored)
  local ok, entries = pcall(cmsgpack.unpack, stored or '\144')
  if not ok or type(entries) ~= 'table' then
    return {}
  end
  for _, entry in ipairs(entries) do
    if type(entry) ~= 'table' or type(entry[1]) ~= 'number' or #entry ~= 4 then
      return {} -- the bytes went bad
    end
  end
  return entries
end
