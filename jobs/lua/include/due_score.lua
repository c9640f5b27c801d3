-- Score in a waiting line (scheduled, retry_wait): due time in ms, with the priority in the fraction, so that promotion
-- needs no body. (100 - priority) / 256 is below 1 and exact at this size of number.
local function due_score(due, priority)
  return due + (100 - priority) / 256
end
