-- Reads what the attempts of a job have logged.
-- Reads only.
-- Reply: for each attempt { attempt, lines that are gone, number of the first line that follows, the lines }
-- #include log_entries
local logs = KEYS[1] -- hash: id -> which attempts have lines
local log_of = KEYS[2] -- prefix of one list of lines per attempt
local id = ARGV[1] -- job id
local only = ARGV[2] -- of this attempt, '' = of all
local items = 3 -- ARGV[3..]: attempt, number of its last line that is known already

local known = {}
for i = items, #ARGV, 2 do
  known[ARGV[i]] = tonumber(ARGV[i + 1])
end

local reply = {}
for _, entry in ipairs(log_entries(redis.call('HGET', logs, id))) do
  local attempt = string.format('%d', entry[1])
  if only == '' or only == attempt then
    local skip = math.max(0, (known[attempt] or 0) - entry[4])
    local lines = redis.call('LRANGE', log_of .. attempt .. ':' .. id, skip, -1)
    reply[#reply + 1] = { entry[1], entry[4], entry[4] + skip + 1, lines }
  end
end
return reply
