-- What runs have not heard of their nodes.
-- Reads only.
-- Reply: for each job that is news: id, run and node, record, result or '', ended attempts or ''
local nodes = KEYS[1] -- hash: id of a live job -> run and node
local outbox = KEYS[2] -- hash: id -> record that its run has not heard of
local results = KEYS[3] -- hash: id -> JSON
local attempts = KEYS[4] -- hash: id -> ended attempts
local items = 1 -- ARGV[1..]: id

local reply = {}
for _, id in ipairs(ARGV) do
  local record = redis.call('HGET', outbox, id)
  if record then
    local facts = { id, redis.call('HGET', nodes, id) or '', record }
    facts[4] = redis.call('HGET', results, id) or ''
    facts[5] = redis.call('HGET', attempts, id) or ''
    for i = 1, 5 do
      reply[#reply + 1] = facts[i]
    end
  end
end
return reply
