-- Stops a job: a waiting one at once, a leased one as soon as its worker learns of it.
-- State: scheduled | ready | retry_wait | blocked -> cancelled; leased -> leased (asked to stop)
-- Errors: JOB_NOT_FOUND, WRONG_STATE (it ended before)
-- Reply: the state it is in now
-- #include record_fields
-- #include server_now
-- #include read_record
-- #include pack_record
-- #include read_header
-- #include leave_waiting
-- #include tally
-- #include tell_runs
-- #include record_bytes
-- #include bundle_of
-- #include leave_bundle
-- #include read_bundle
-- #include untie
local clock = KEYS[1] -- string: high-water mark of server time
local bodies = KEYS[2] -- hash: id -> body
local states = KEYS[3] -- hash: id -> record
local scheduled = KEYS[4] -- zset: id -> due score
local retry_wait = KEYS[5] -- zset: id -> due score
local ready = KEYS[6] -- zset: id -> place
local blocked = KEYS[7] -- zset: id -> since
local cancelled = KEYS[8] -- zset: id -> end
local parked = KEYS[9] -- hash: type -> parked jobs
local parked_of = KEYS[10] -- prefix of one zset per parked type
local live = KEYS[11] -- prefix: one hash of figures per 10 s
local throttled = KEYS[12] -- zset: id -> place
local lines = KEYS[13] -- prefix: of the keys of the partition
local leased = KEYS[14] -- zset: id, or line break and token of a bundle -> lease deadline
local bundles = KEYS[15] -- hash: token -> packed ids and places
local bundled = KEYS[16] -- hash: token -> jobs still in the bundle
local given_now = ARGV[1] -- ms, '' = the server's clock
local id = ARGV[2] -- job id
local only_waiting = ARGV[3] -- '1': refuse a leased job instead of asking it to stop

untie({ states = states, leased = leased, bundles = bundles, bundled = bundled }, { id })
local body = redis.call('HGET', bodies, id)
local raw = redis.call('HGET', states, id)
if not raw and (not body or body == '') then
  return redis.error_reply('JOB_NOT_FOUND ' .. 'no such job')
end
local record = read_record(raw, 'waiting')
if not record then
  record = read_record(nil, 'waiting')
end
local state = record[STATE]
if state == 'succeeded' or state == 'dead' or state == 'cancelled' or state == 'skipped' or (state == 'leased' and only_waiting == '1') then
  return redis.error_reply('WRONG_STATE ' .. state)
end
local now = server_now(clock, given_now)
if state == 'leased' then
  record[CANCEL] = 1
else
  local header = read_header(body)
  local keys = {
    ready = ready,
    scheduled = scheduled,
    retry_wait = retry_wait,
    blocked = blocked,
    throttled = throttled,
    parked = parked,
    parked_of = parked_of,
  }
  leave_waiting(id, keys, header and header[2])
  record[STATE], record[FINISHED_AT] = 'cancelled', now
  redis.call('ZADD', cancelled, now, id)
  tally(live, now, 'cancelled', header and header[2] or '', 1)
end
local packed = pack_record(record)
redis.call('HSET', states, id, packed)
if state ~= 'leased' then
  tell_runs(lines, { id, packed })
end
return record[STATE]
