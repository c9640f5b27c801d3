-- A record's bytes, for the two scripts that touch every job and cannot afford to take each record apart.
-- Needs: record_fields, pack_record.
local STATE_BYTE, CANCEL_BYTE, TOKEN_BYTE = 1, 23, 57
local byte_at, part_of, pack_bytes, unpack_bytes = string.byte, string.sub, struct.pack, struct.unpack -- locals are fast
local READY_CODE, LEASED_CODE, SUCCEEDED_CODE, CANCELLED_CODE =
  CODE_OF.ready, CODE_OF.leased, CODE_OF.succeeded, CODE_OF.cancelled

-- Whether these are the bytes of a record under this token.
local function is_under_token(raw, token)
  return byte_at(raw, TOKEN_BYTE - 1) == #token and part_of(raw, TOKEN_BYTE, TOKEN_BYTE - 1 + #token) == token
end

-- How many bytes come before STARTED_AT.
local function head_length(raw, token)
  local worker_byte = TOKEN_BYTE + #token
  return worker_byte + byte_at(raw, worker_byte)
end

-- What comes before STARTED_AT once the job has succeeded: state, no lost leases, finished.
local SUCCEEDED_STATE = string.char(SUCCEEDED_CODE)
local function succeeded_head(head, finished_at_bytes)
  return SUCCEEDED_STATE .. part_of(head, 2, 17) .. '\0' .. part_of(head, 19, 39) .. finished_at_bytes .. part_of(head, 48)
end
