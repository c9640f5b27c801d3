-- The time of a group is over: what waits in it, or in groups in it, never starts, but for nodes that are marked so; ending
-- what runs is the caller's. Told again it changes nothing.
-- Errors: RUN_NOT_FOUND
-- Reply: "cut", or the state of the group where it does not live
-- #include node_fields
-- #include agenda
local run = KEYS[1] -- hash: facts of the run
local ranks = KEYS[2] -- hash: key of a node -> rank
local states = KEYS[3] -- hash: rank -> how it stands
local errors = KEYS[4] -- hash: rank -> JSON
local agenda = KEYS[5] -- zset: what is to be looked at -> in which order
local group = ARGV[1] -- its key
local problem = ARGV[2] -- JSON of an error
local items = 3 -- ARGV[3..]: keys of groups in it

local rank = redis.call('HGET', ranks, group)
if not rank then
  return redis.error_reply('RUN_NOT_FOUND ' .. 'there is no such node')
end
local state = read_state({ states = states }, rank)
if state[CODE] ~= LIVE then
  return WORDS[state[CODE]]
end
local raw = redis.call('HGET', run, 'cuts')
local cuts = raw and cmsgpack.unpack(raw) or {}
cuts[group] = cuts[group] or group
for i = items, #ARGV do
  cuts[ARGV[i]] = cuts[ARGV[i]] or group -- because of which group it is cut
end
redis.call('HSET', run, 'cuts', cmsgpack.pack(cuts))
redis.call('HSET', errors, rank, problem)
sweep_later({ run = run, agenda = agenda }, 0)
return 'cut'
