-- A job's state record: positions in the Lua table, and the bytes in Redis. Whoever changes one changes jobs.store.codec.records.
-- ATTEMPT counts starts; ERRORS the failed ones, CRASHES those whose worker died, LOST the leases in a row that ended
-- unused; FENCE grows with every lease. Times are server milliseconds, 0 = not yet; READY_AT is also 0 while the job was
-- never made ready by anything but its body's times. PLACE is the score in the ready line, as text; '0' = none yet.
--
-- The jobs that one call leases have the same bytes up to STARTED_AT: what differs comes last.
local STATE, ATTEMPT, ERRORS, CRASHES, FENCE, LOST, RESUBMISSIONS, CANCEL = 1, 2, 3, 4, 5, 6, 7, 8
local READY_AT, LEASED_AT, FINISHED_AT, RUN_AT = 9, 10, 11, 12
local TOKEN, WORKER, STARTED_AT, PLACE = 13, 14, 15, 16
local RECORD = '>BI4I4I4I4BI4BI8I8I8I8Bc0Bc0I8' -- and the place, to the end
local STATE_OF = { 'scheduled', 'blocked', 'ready', 'leased', 'retry_wait', 'succeeded', 'dead', 'cancelled', 'skipped' }
-- Written out: a loop that turns it round would cost every script as much as a command.
local CODE_OF = {
  scheduled = 1, blocked = 2, ready = 3, leased = 4, retry_wait = 5, succeeded = 6, dead = 7, cancelled = 8, skipped = 9,
}
