-- Adds durations to the figures: type -> bucket -> how many, and the sum in ms under `ms`. Needs: tally.
local function tally_durations(live, now, name, durations)
  for type, numbers in pairs(durations) do
    for at, number in pairs(numbers) do
      if at ~= 'ms' then
        tally(live, now, name .. at, type, number)
      elseif number > 0 then
        tally(live, now, name .. '_ms', type, number)
      end
    end
  end
end
