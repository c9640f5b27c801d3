-- Ends a node that is no job and waits: "ended", or how it stands otherwise. Needs: node_fields, agenda, move_node.
local function end_wait(keys, rank, now, code, result, problem)
  local state = read_state(keys, rank)
  if state[RELEASED] == 0 or state[CODE] ~= LIVE then
    return WORDS[state[CODE]]
  end
  state[ENDED_AT] = now
  move_node(keys, rank, read_node(keys, rank), state, code)
  write_state(keys, rank, state)
  redis.call('ZREM', keys.outbox, rank)
  redis.call('HDEL', keys.waiting, rank)
  if result ~= '' then
    redis.call('HSET', keys.results, rank, result)
  end
  if problem ~= '' then
    redis.call('HSET', keys.errors, rank, problem)
  end
  return 'ended'
end
