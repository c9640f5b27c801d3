-- A record's bytes, for the two scripts that touch every job and cannot afford to take each record apart.
-- Needs: record_fields, pack_record.
local STATE_BYTE, CANCEL_BYTE, TOKEN_BYTE = 1, 23, 73
local byte_at, part_of, pack_bytes = string.byte, string.sub, struct.pack -- locals are the fast names of Lua
local READY_CODE, LEASED_CODE, SUCCEEDED_CODE, CANCELLED_CODE =
  CODE_OF.ready, CODE_OF.leased, CODE_OF.succeeded, CODE_OF.cancelled

-- Whether these are the bytes of a record under this token.
local function is_under_token(raw, token)
  return byte_at(raw, TOKEN_BYTE - 1) == #token and part_of(raw, TOKEN_BYTE, TOKEN_BYTE - 1 + #token) == token
end

-- The records of untouched jobs that one call leases differ only in READY_AT and PLACE: the bytes before, between, after.
local function first_lease_bytes(now, token, worker)
  return struct.pack('>BI4I4I4I4BI4B', LEASED_CODE, 1, 0, 0, 1, 0, 0, 0),
    struct.pack('>I8I8I8I8', now, 0, 0, 0),
    struct.pack('Bc0Bc0', #token, token, #worker, worker)
end

-- The same record, succeeded: state, no lost leases, started and finished.
local SUCCEEDED_STATE = string.char(SUCCEEDED_CODE)
local function succeeded_bytes(raw, started_at, finished_at_bytes)
  return SUCCEEDED_STATE .. part_of(raw, 2, 17) .. '\0' .. part_of(raw, 19, 39)
    .. pack_bytes('>I8', started_at) .. finished_at_bytes .. part_of(raw, 56)
end
