-- Counts what no other script sees: an enqueue that found its job there already, for instance.
-- Reply: "ok"
-- #include server_now
-- #include tally
local clock = KEYS[1] -- string: high-water mark of server time
local live = KEYS[2] -- prefix: one hash of figures per 10 s
local given_now = ARGV[1] -- ms, '' = the server's clock
local figure = ARGV[2] -- name of the figure
local type = ARGV[3] -- job type
local number = tonumber(ARGV[4]) -- how many

tally(live, server_now(clock, given_now), figure, type, number)
return 'ok'
