-- How many jobs are leased: each entry of `leased` is one job, or a bundle of as many as are still in it.
local function leased_count(leased, bundled)
  local count = redis.call('ZCARD', leased)
  if redis.call('EXISTS', bundled) == 1 then
    for _, number in ipairs(redis.call('HVALS', bundled)) do
      count = count - 1 + (tonumber(number) or 1)
    end
  end
  return count
end
