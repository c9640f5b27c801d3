-- Writes down what autoscaling decided for a pool, and carries it out where it changes something.
-- Errors: LEASE_LOST (another host does the autoscaling now)
-- Reply: 'ok'
-- #include holds_service
-- #include tell
local services = KEYS[1] -- hash: service -> packed holder, token, until when
local scalings = KEYS[2] -- hash: pool -> its last decisions
local pools = KEYS[3] -- hash: <pool>:<setting> -> JSON
local news = KEYS[4] -- stream: topics
local given_now = ARGV[1] -- ms, '' = the server's clock
local token = ARGV[2] -- of the right to autoscale
local pool = ARGV[3] -- its name
local decisions = ARGV[4] -- packed: the last ones with this one
local slots = ARGV[5] -- slots per worker process from now on, '' = no change

if not holds_service(services, 'autoscaler', token, given_now) then
  return redis.error_reply('LEASE_LOST ' .. 'another host does the autoscaling now')
end
redis.call('HSET', scalings, pool, decisions)
if slots ~= '' then
  redis.call('HSET', pools, pool .. ':scaled_to', slots)
  tell(news, 'pools')
end
return 'ok'
