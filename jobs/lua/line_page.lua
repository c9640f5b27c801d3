-- One page of a line (a sorted set), from just after a given member.
-- Reads only.
-- Reply: id, score, id, score, …
local line = KEYS[1] -- zset
local after_score = ARGV[1] -- score of the last member seen, '' = from the start
local after_id = ARGV[2] -- its id; it need not be there any more
local limit = tonumber(ARGV[3]) -- most members
local descending = ARGV[4] -- '1': from the end

-- Byte by byte, as the line is sorted: Lua's own comparison of texts follows the language of the server's machine.
local function comes_after(left, right)
  for position = 1, math.min(#left, #right) do
    local a, b = string.byte(left, position), string.byte(right, position)
    if a ~= b then
      return a > b
    end
  end
  return #left > #right
end

local function first_rank_after()
  local low = redis.call('ZCOUNT', line, '-inf', '(' .. after_score)
  local high = low + redis.call('ZCOUNT', line, after_score, after_score)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local member = redis.call('ZRANGE', line, middle, middle)[1]
    if comes_after(member, after_id) or (descending == '1' and member == after_id) then
      high = middle
    else
      low = middle + 1
    end
  end
  return low
end

if descending == '1' then
  local last = after_score == '' and -1 or first_rank_after() - 1
  if after_score ~= '' and last < 0 then
    return {}
  end
  local stop = redis.call('ZCARD', line) - 1
  if last >= 0 then
    stop = last
  end
  local page = redis.call('ZRANGE', line, math.max(0, stop - limit + 1), stop, 'WITHSCORES')
  local reply = {}
  for i = #page - 1, 1, -2 do
    reply[#reply + 1] = page[i]
    reply[#reply + 1] = page[i + 1]
  end
  return reply
end
local first = after_score == '' and 0 or first_rank_after()
return redis.call('ZRANGE', line, first, first + limit - 1, 'WITHSCORES')
