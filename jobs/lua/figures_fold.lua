-- Carries the figures of 10 seconds that are over into the totals and the series, and drops what is too old for these.
-- Reply: how many windows of 10 seconds were carried, '1' if there are more
-- #include server_now
local clock = KEYS[1] -- string: high-water mark of server time
local control = KEYS[2] -- hash: folded_until, run_ms
local live = KEYS[3] -- prefix: one hash of figures per 10 s
local counters = KEYS[4] -- hash: totals
local seconds = KEYS[5] -- stream: 10 s each
local minutes = KEYS[6] -- stream: 5 min each
local given_now = ARGV[1] -- ms, '' = the server's clock
local keep_live = tonumber(ARGV[2]) -- windows that are over and stay live, so that rates are read with plain commands
local keep_seconds = tonumber(ARGV[3]) -- ms that the 10 s are kept
local keep_minutes = tonumber(ARGV[4]) -- ms that the 5 min are kept

local WINDOW, SLOT = 10000, 300000
local STEP, MOST_STEPS, MOST_FIELDS, MOST_SLOTS = 500, 40, 4000, 10
local MOST_TYPES, MOST_TOTALS, OTHERS = 200, 20000, '(others)'
local FIRST_LOOK = 259200000 -- ms, three days
local MEMORY = 0.3 -- weight of the newest window in the running mean

local now = server_now(clock, given_now)

local function decimal(number)
  return string.format('%.0f', number)
end

-- Names of windows for the long look back: their thousands are written once, their rests once a call. To write each
-- number out would take longer than to look for its key.
local rests = {}

local function live_keys(first, last)
  local keys, head = {}, nil
  for window = first, last do
    local rest = window % 1000
    if rest == 0 or not head then
      head = live .. decimal((window - rest) / 1000)
    end
    if not rests[rest] then
      rests[rest] = string.format('%03d', rest)
    end
    keys[window - first + 1] = head .. rests[rest]
  end
  return keys
end

-- Figures by type. Names come from producers: beyond a number that no project has, they share one.
local function new_types()
  return { of = {}, count = 0 }
end

local function figures_of(types, type)
  if not types.of[type] and types.count >= MOST_TYPES then
    type = OTHERS
  end
  if not types.of[type] then
    types.of[type] = {}
    types.count = types.count + 1
  end
  return types.of[type]
end

local function add(figures, figure, number)
  figures[figure] = (figures[figure] or 0) + number
end

local function append(stream, at, all, types)
  local fields = { 'all', cmsgpack.pack(all) }
  for type, figures in pairs(types.of) do
    fields[#fields + 1] = ':' .. type
    fields[#fields + 1] = cmsgpack.pack(figures)
  end
  redis.pcall('XADD', stream, decimal(at) .. '-0', unpack(fields)) -- refused only where a later one is there already
end

local function add_total(field, figure, number)
  if redis.call('HLEN', counters) >= MOST_TOTALS and redis.call('HEXISTS', counters, field) == 0 then
    field = figure .. ':' .. OTHERS
  end
  redis.pcall('HINCRBY', counters, field, decimal(number))
end

-- The running mean of how long an attempt takes, for whoever asks while none ends.
local function remember_run_time(all)
  local ended = 0
  for figure, number in pairs(all) do
    if figure == 'failed' or string.match(figure, '^run%d') then
      ended = ended + number
    end
  end
  if ended > 0 then
    local mean = ((all.run_ms or 0) + (all.failed_ms or 0)) / ended
    local before = tonumber(redis.call('HGET', control, 'run_ms') or nil)
    redis.call('HSET', control, 'run_ms', before and before + MEMORY * (mean - before) or mean)
  end
end

local function fold(window)
  local key = live .. decimal(window)
  local stored = redis.pcall('HGETALL', key)
  local all, types = {}, new_types()
  for i = 1, #stored, 2 do
    local figure, type = string.match(stored[i], '^([^:]+):(.*)$')
    local number = tonumber(stored[i + 1])
    if figure and number then
      add(all, figure, number)
      add(figures_of(types, type), figure, number)
      add_total(stored[i], figure, number)
    end
  end
  redis.call('UNLINK', key)
  if next(all) then
    append(seconds, window * WINDOW, all, types)
    remember_run_time(all)
  end
  return #stored / 2
end

-- Without a mark nobody has folded here yet: then jobs have come for some days at most without a worker or a reader. What
-- is older than the series would be of no use to them.
local current = math.floor(now / WINDOW)
local goal = current - keep_live
local mark = tonumber(redis.call('HGET', control, 'folded_until') or nil)
local at = math.max(mark or current - FIRST_LOOK / WINDOW, current - keep_minutes / WINDOW)
local folded, fields, steps = 0, 0, 0
while at < goal and fields < MOST_FIELDS and steps < MOST_STEPS do
  local last = math.min(at + STEP, goal) - 1
  if redis.call('EXISTS', unpack(live_keys(at, last))) == 0 then
    at = last + 1
  end
  while at <= last and fields < MOST_FIELDS do
    if redis.call('EXISTS', live .. decimal(at)) == 1 then
      fields = fields + fold(at)
      folded = folded + 1
    end
    at = at + 1
  end
  steps = steps + 1
end
if at ~= mark then
  redis.call('HSET', control, 'folded_until', decimal(at))
end

local function start_of(entry)
  return tonumber(string.match(entry[1], '^%d+'))
end

local function merge(into, packed)
  local is_map, figures = pcall(cmsgpack.unpack, packed)
  for figure, number in pairs(is_map and figures or {}) do
    add(into, figure, number)
  end
end

local function fold_slot(start)
  local all, types = {}, new_types()
  for _, entry in ipairs(redis.call('XRANGE', seconds, decimal(start), decimal(start + SLOT - 1))) do
    for i = 1, #entry[2], 2 do
      local name, packed = entry[2][i], entry[2][i + 1]
      merge(name == 'all' and all or figures_of(types, string.sub(name, 2)), packed)
    end
  end
  append(minutes, start, all, types)
end

local newest = redis.call('XREVRANGE', minutes, '+', '-', 'COUNT', 1)[1]
local from = newest and start_of(newest) + SLOT or 0
local slots = 0
while slots < MOST_SLOTS do
  local entry = redis.call('XRANGE', seconds, decimal(from), '+', 'COUNT', 1)[1]
  local start = entry and math.floor(start_of(entry) / SLOT) * SLOT
  if not start or start + SLOT > at * WINDOW then
    break
  end
  fold_slot(start)
  from = start + SLOT
  slots = slots + 1
end
redis.call('XTRIM', seconds, 'MINID', decimal(math.max(0, math.min(now - keep_seconds, from))))
redis.call('XTRIM', minutes, 'MINID', decimal(math.max(0, now - keep_minutes)))
return { folded, (at < goal or slots == MOST_SLOTS) and '1' or '' }
