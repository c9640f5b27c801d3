-- Score in the ready line: priority first (higher is earlier), then the order of arrival. 201 priorities and 2^44 places
-- fit the 53 exact bits of a score. Text, since numbers that cross to the server are dearer to turn into it.
local function ready_place(priority, sequence)
  return string.format('%d', (100 - priority) * 17592186044416 + sequence)
end
