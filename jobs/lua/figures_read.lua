-- Reads the totals, a series, and the windows that are still live, at one moment: nothing is seen twice or not at all.
-- Reads only.
-- Reply: now, the totals as field and number, entries of the series as start and packed figures, live windows as start and fields
local control = KEYS[1] -- hash: folded_until
local live = KEYS[2] -- prefix: one hash of figures per 10 s
local counters = KEYS[3] -- hash: totals
local series = KEYS[4] -- stream: 10 s or 5 min each
local given_now = ARGV[1] -- ms, '' = the server's clock
local with_totals = ARGV[2] -- '1': the totals too
local since = ARGV[3] -- ms, start of the first entry; '' = no series
local name = ARGV[4] -- "all", or ":" and a type
local limit = tonumber(ARGV[5]) -- most entries

local WINDOW, MOST_LIVE = 10000, 360

local now = tonumber(given_now)
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end

local function entries()
  local found = {}
  for _, entry in ipairs(redis.call('XRANGE', series, since, '+', 'COUNT', limit)) do
    found[#found + 1] = string.match(entry[1], '^%d+')
    found[#found + 1] = ''
    for i = 1, #entry[2], 2 do
      if entry[2][i] == name then
        found[#found] = entry[2][i + 1]
      end
    end
  end
  return found
end

-- Also the one after: the partition's clock never goes back, the server's may.
local function windows()
  local found = {}
  local current = math.floor(now / WINDOW)
  local first = tonumber(redis.call('HGET', control, 'folded_until') or nil) or 0
  for window = math.max(first, current - MOST_LIVE), current + 1 do
    local fields = redis.pcall('HGETALL', live .. string.format('%.0f', window))
    if #fields > 0 then
      found[#found + 1] = string.format('%.0f', window * WINDOW)
      found[#found + 1] = fields
    end
  end
  return found
end

return {
  now,
  with_totals == '1' and redis.call('HGETALL', counters) or {},
  since ~= '' and entries() or {},
  windows(),
}
