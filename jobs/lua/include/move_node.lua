-- A node stands otherwise from now on: keeps the accounts, and puts what follows on the agenda. The state is changed and not
-- yet written. Needs: node_fields, agenda.
local function move_node(keys, rank, node, state, code)
  local before, scope = state[CODE], node[SCOPE]
  if before == code then
    return false
  end
  local was_over, is_over = before >= SUCCEEDED, code >= SUCCEEDED
  count_up(keys, keys.counts, WORDS[before], -1)
  count_up(keys, keys.counts, WORDS[code], 1)
  if before == DEAD or before == CANCELLED then
    redis.call('ZREM', keys.failures_of .. scope, rank)
  end
  if code == DEAD or code == CANCELLED then
    redis.call('ZADD', keys.failures_of .. scope, rank, rank)
  end
  if was_over ~= is_over then
    count_up(keys, keys.run, 'left:' .. scope, is_over and -1 or 1)
  end
  if was_over or is_over then
    tell_later(keys, rank, node[DEPTH])
    judge_later(keys, scope, node[DEPTH])
  end
  state[CODE] = code
  return true
end
