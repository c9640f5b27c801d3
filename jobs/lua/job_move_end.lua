-- The last step of a move: the jobs that go on are there, and those that ended for them may be forgotten.
-- Reply: for how many that was news
local expiring = KEYS[1] -- zset: id -> forget at; 'inf': half moved
local items = 1 -- ARGV[1..]: id

local ended = 0
for i = items, #ARGV do
  if redis.call('ZSCORE', expiring, ARGV[i]) == 'inf' then
    ended = ended + redis.call('ZREM', expiring, ARGV[i])
  end
end
return ended
