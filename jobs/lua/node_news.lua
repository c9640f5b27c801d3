-- What runs have not heard of their nodes.
-- Reads only.
-- Reply: for each job that is news: id, run and node, record, result or '', ended attempts or ''
local nodes = KEYS[1] -- hash: id of a live job -> run and node
local outbox = KEYS[2] -- hash: id -> record that its run has not heard of
local results = KEYS[3] -- hash: id -> JSON
local attempts = KEYS[4] -- hash: id -> ended attempts
local items = 1 -- ARGV[1..]: id

local records = redis.call('HMGET', outbox, unpack(ARGV))
local facts = {}
for position, key in ipairs({ nodes, results, attempts }) do
  facts[position] = redis.call('HMGET', key, unpack(ARGV))
end
local reply = {}
for i, id in ipairs(ARGV) do
  if records[i] then
    reply[#reply + 1] = id
    reply[#reply + 1] = facts[1][i] or ''
    reply[#reply + 1] = records[i]
    reply[#reply + 1] = facts[2][i] or ''
    reply[#reply + 1] = facts[3][i] or ''
  end
end
return reply
