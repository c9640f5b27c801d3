-- A record's bytes, for the two scripts that touch every job and cannot afford to take each record apart.
-- Needs: record_fields.
local STATE_BYTE, CANCEL_BYTE, TOKEN_BYTE = 1, 23, 57
local byte_at, part_of, pack_bytes, unpack_bytes = string.byte, string.sub, struct.pack, struct.unpack -- locals are fast
local READY_CODE, LEASED_CODE, SUCCEEDED_CODE, CANCELLED_CODE = 3, 4, 6, 8 -- their places in STATE_OF
