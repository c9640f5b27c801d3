-- Keeps lines that the handlers of running attempts have logged. The oldest of an attempt make room for the newest.
-- State: leased -> leased
-- Reply: for each attempt "ok" or "lost"
-- #include record_fields
-- #include read_record
-- #include held_record
-- #include log_entries
local states = KEYS[1] -- hash: id -> record
local logs = KEYS[2] -- hash: id -> which attempts have lines
local log_of = KEYS[3] -- prefix of one list of lines per attempt
local keep_lines = tonumber(ARGV[1]) -- most lines of one attempt
local keep_bytes = tonumber(ARGV[2]) -- most bytes of one attempt
local keep_attempts = tonumber(ARGV[3]) -- most attempts of one job
local items = 4 -- ARGV[4..]: for each attempt id, token, lines that never came here, number of lines, the lines

-- { attempt, lines, bytes, lines that are gone } of this attempt among those of the job, which may grow by it.
local function entry_of(attempt, entries, id)
  for _, entry in ipairs(entries) do
    if entry[1] == attempt then
      return entry
    end
  end
  if #entries >= keep_attempts then
    redis.call('UNLINK', log_of .. string.format('%d', table.remove(entries, 1)[1]) .. ':' .. id)
  end
  entries[#entries + 1] = { attempt, 0, 0, 0 }
  return entries[#entries]
end

local function drop(entry, lines)
  for _, line in ipairs(lines) do
    entry[2], entry[3], entry[4] = entry[2] - 1, entry[3] - #line, entry[4] + 1
  end
end

local function append(id, attempt, gone, lines)
  local entries = log_entries(redis.call('HGET', logs, id))
  local entry = entry_of(attempt, entries, id)
  local list = log_of .. string.format('%d', attempt) .. ':' .. id
  entry[4] = entry[4] + gone
  for _, line in ipairs(lines) do
    entry[2], entry[3] = entry[2] + 1, entry[3] + #line
  end
  redis.call('RPUSH', list, unpack(lines))
  if entry[2] > keep_lines then
    drop(entry, redis.call('LPOP', list, entry[2] - keep_lines))
  end
  while entry[3] > keep_bytes and entry[2] > 1 do
    drop(entry, { redis.call('LPOP', list) })
  end
  redis.call('HSET', logs, id, cmsgpack.pack(entries))
end

local reply = {}
local at = items
while ARGV[at] do
  local id, count = ARGV[at], tonumber(ARGV[at + 3])
  local record = held_record(redis.call('HGET', states, id), ARGV[at + 1])
  if record then
    append(id, record[ATTEMPT], tonumber(ARGV[at + 2]), { unpack(ARGV, at + 4, at + 3 + count) })
  end
  reply[#reply + 1] = record and 'ok' or 'lost'
  at = at + 4 + count
end
return reply
