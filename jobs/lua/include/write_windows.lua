-- Stores windows of rate keys: key and window, over and over. All of a type go away an hour after a period without any
-- start: its code may be gone, and nobody sweeps them.
local function write_windows(windows_key, changed, period)
  if changed[1] then
    redis.call('HSET', windows_key, unpack(changed))
    redis.call('PEXPIRE', windows_key, period + 3600000)
  end
end
