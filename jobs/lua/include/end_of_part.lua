-- When the part of a rate's period ends in which something starts now, ms.
local PARTS = 64

local function end_of_part(period, now)
  local part = math.max(1, math.floor(period / PARTS))
  return now - now % part + part
end
