-- Notes how many jobs are ready in each pool: at most once a minute for a day, and once in half an hour for 30 days.
-- Reply: '1' when this call noted it, '' where another had noted this minute
local minutes = KEYS[1] -- stream: a minute each
local halves = KEYS[2] -- stream: half an hour each
local given_now = ARGV[1] -- ms, '' = the server's clock
local counts = ARGV[2] -- packed: pool -> ready jobs

local MINUTE, MINUTES_KEPT = 60000, 86400000 -- ms
local HALF, HALVES_KEPT = 1800000, 2592000000 -- ms

local now = tonumber(given_now)
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end

local function note(stream, step, kept)
  local at = string.format('%.0f-0', now - now % step)
  local added = redis.pcall('XADD', stream, at, 'ready', counts) -- refused where there is one of this step or a later one
  if type(added) == 'table' and added.err then
    return false
  end
  redis.call('XTRIM', stream, 'MINID', string.format('%.0f', math.max(0, now - kept)))
  return true
end

if not note(minutes, MINUTE, MINUTES_KEPT) then
  return ''
end
note(halves, HALF, HALVES_KEPT)
return '1'
