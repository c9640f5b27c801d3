-- Begins a run that has no nodes yet. It does nothing until it is opened.
-- Brings work.
-- Reply: "created", or the state of the run that is there
-- #include server_now
local clock = KEYS[1] -- string: high-water mark of server time
local run = KEYS[2] -- hash: facts of the run
local given_now = ARGV[1] -- ms, '' = the server's clock
local items = 2 -- ARGV[2..]: fact, value

local state = redis.call('HGET', run, 'state')
if state then
  return state
end
local facts = { 'state', 'preparing', 'created_at', server_now(clock, given_now), 'total', 0, 'lives', 0 }
for i = items, #ARGV do
  facts[#facts + 1] = ARGV[i]
end
redis.call('HSET', run, unpack(facts))
return 'created'
