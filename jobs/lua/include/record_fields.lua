-- A job's state record: positions in the Lua table, and the bytes in Redis. Whoever changes one changes jobs.store.codec.
-- ATTEMPT counts starts; ERRORS the failed ones, CRASHES those whose worker died, LOST the leases in a row that ended
-- unused; FENCE grows with every lease. Times are server milliseconds, 0 = not yet. PLACE is the score in the ready line.
local STATE, ATTEMPT, ERRORS, CRASHES, FENCE, LOST, RESUBMISSIONS, CANCEL = 1, 2, 3, 4, 5, 6, 7, 8
local READY_AT, LEASED_AT, STARTED_AT, FINISHED_AT, RUN_AT, PLACE = 9, 10, 11, 12, 13, 14
local TOKEN, WORKER = 15, 16
local RECORD = '>BI4I4I4I4BI4BI8I8I8I8I8I8Bc0Bc0'
local STATE_OF = { 'scheduled', 'blocked', 'ready', 'leased', 'retry_wait', 'succeeded', 'dead', 'cancelled', 'skipped' }
