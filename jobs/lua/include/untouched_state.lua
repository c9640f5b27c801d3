-- The state of a job that was never touched, and so has no record: it stands in one of two lines.
local function untouched_state(id, scheduled_key)
  return redis.call('ZSCORE', scheduled_key, id) and 'scheduled' or 'ready'
end
