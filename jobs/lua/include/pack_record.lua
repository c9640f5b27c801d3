-- The bytes of a record. Needs: record_fields.
local function pack_record(r)
  return struct.pack(
    RECORD, CODE_OF[r[STATE]], r[2], r[3], r[4], r[5], r[6], r[7], r[8], r[9], r[10], r[11], r[12],
    #r[13], r[13], #r[14], r[14], r[15]
  ) .. r[16]
end
