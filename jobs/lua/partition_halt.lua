-- Tells a partition whether jobs of a run may start: a lease asks here, in the same slot as the jobs. What runs goes on. An
-- older version than the last one is not taken, and nobody who comes late: a run that is over may have been forgotten here.
-- Reply: "told", "known" (so or a newer one), or "late"
-- #include server_now
local clock = KEYS[1] -- string: high-water mark of server time
local control = KEYS[2] -- hash: halted (how many runs are)
local halted = KEYS[3] -- hash: run -> version of what was told of it; above 0: nothing of it starts
local given_now = ARGV[1] -- ms, '' = the server's clock
local run = ARGV[2] -- its id
local version = tonumber(ARGV[3]) -- grows with each pause of the run and each end of one
local what = ARGV[4] -- 'halt', 'go on', or 'forget' (it is over)
local not_after = tonumber(ARGV[5]) -- ms of server time

local known = tonumber(redis.call('HGET', halted, run) or nil) or 0
if server_now(clock, given_now) > not_after then
  return 'late'
elseif version < math.abs(known) or (version == math.abs(known) and what ~= 'forget') then
  return 'known'
end
if (what == 'halt') ~= (known > 0) then
  redis.call('HINCRBY', control, 'halted', what == 'halt' and 1 or -1)
end
if what == 'forget' then
  redis.call('HDEL', halted, run)
else
  redis.call('HSET', halted, run, string.format('%d', what == 'halt' and version or -version))
end
return 'told'
