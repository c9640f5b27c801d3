-- Positions in a job's packed state record (cmsgpack array). New fields go to the end; old positions never change.
local STATE, ATTEMPT, ERRORS, CRASHES, FENCE, LOST, RESUBMISSIONS, CANCEL = 1, 2, 3, 4, 5, 6, 7, 8
local READY_AT, LEASED_AT, STARTED_AT, FINISHED_AT, RUN_AT, PLACE = 9, 10, 11, 12, 13, 14
local TOKEN, WORKER = 15, 16
-- ATTEMPT counts starts; ERRORS the failed ones, CRASHES those whose worker died, LOST the leases in a row that ended
-- unused; FENCE grows with every lease. Times are server milliseconds, 0 = not yet. PLACE is the score in the ready line.
