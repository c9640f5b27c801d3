-- Fixes under which ids the jobs of nodes are made, before they are: whoever repeats the step makes no second job.
-- Reply: for each the id that counts, '' where the node is not to become one (any more)
-- #include node_fields
local states = KEYS[1] -- hash: rank -> how it stands
local items = 1 -- ARGV[1..]: rank, id

local keys = { states = states }
local reply = {}
for i = 1, #ARGV / 2 do
  local rank, id = ARGV[2 * i - 1], ARGV[2 * i]
  local state = read_state(keys, rank)
  if state and state[CODE] ~= LIVE then
    state = nil -- it was given up meanwhile
  elseif state and state[JOB] == '' then
    state[JOB] = id
    write_state(keys, rank, state)
  end
  reply[i] = state and state[JOB] or ''
end
return reply
