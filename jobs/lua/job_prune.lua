-- Forgets ended jobs whose retention is over. Dead jobs stay until somebody resubmits or discards them.
-- State: succeeded | cancelled | skipped -> (none)
-- Reply: now, how many jobs of `line` were looked at but kept (they have a retention of their own), then the ids forgotten
-- #include server_now
-- #include log_entries
-- #include forget_logs
-- #include forget_jobs
local clock = KEYS[1] -- string: high-water mark of server time
local line = KEYS[2] -- zset: id -> end; one of succeeded, cancelled, skipped
local bodies = KEYS[3] -- hash: id -> body
local states = KEYS[4] -- hash: id -> record
local attempts = KEYS[5] -- hash: id -> ended attempts
local results = KEYS[6] -- hash: id -> JSON
local progress = KEYS[7] -- hash: id -> progress
local expiring = KEYS[8] -- zset: id -> forget at; 'inf': half moved
local logs = KEYS[9] -- hash: id -> which attempts have lines
local log_of = KEYS[10] -- prefix of one list of lines per attempt
local nodes = KEYS[11] -- hash: id of a live job -> run and node
local given_now = ARGV[1] -- ms, '' = the server's clock
local retention = tonumber(ARGV[2]) -- ms after the end
local limit = tonumber(ARGV[3]) -- most jobs to look at
local skip = tonumber(ARGV[4]) -- jobs at the head that are known to be kept

local now = server_now(clock, given_now)
local old = redis.call('ZRANGEBYSCORE', line, '-inf', string.format('%.0f', now - retention), 'LIMIT', skip, limit)
local reply, gone, kept = { now, 0 }, {}, 0
local is_gone = {}
local has_nodes = redis.call('EXISTS', nodes) == 1
-- Of a node whose run has not heard of its end nothing is forgotten: its result goes to its children.
local function is_awaited(id)
  return has_nodes and redis.call('HEXISTS', nodes, id) == 1
end
if old[1] then
  local own = redis.call('ZMSCORE', expiring, unpack(old))
  for i, id in ipairs(old) do
    if (own[i] and tonumber(own[i]) > now) or is_awaited(id) then
      kept = kept + 1
    else
      gone[#gone + 1] = id
      is_gone[id] = true
    end
  end
end
-- Jobs that are to be forgotten sooner than the others.
for _, id in ipairs(redis.call('ZRANGEBYSCORE', expiring, '-inf', string.format('%.0f', now), 'LIMIT', 0, limit)) do
  if not is_gone[id] and redis.call('ZSCORE', line, id) and not is_awaited(id) then
    gone[#gone + 1] = id
  end
end
reply[2] = kept
if gone[1] then
  redis.call('ZREM', line, unpack(gone))
  local keys = { bodies = bodies, states = states, attempts = attempts, results = results, progress = progress, expiring = expiring }
  keys.logs, keys.log_of = logs, log_of
  forget_jobs(gone, keys)
  for i, id in ipairs(gone) do
    reply[2 + i] = id
  end
end
return reply
