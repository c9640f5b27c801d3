-- Gives the jobs of bundles leases of their own, for whoever looks at the line of leased jobs. No fact about them changes.
-- State: leased -> leased
-- Reply: how many jobs
-- #include record_fields
-- #include read_record
-- #include record_bytes
-- #include bundle_of
-- #include leave_bundle
-- #include read_bundle
-- #include untie
-- #include open_bundle
local states = KEYS[1] -- hash: id -> record
local leased = KEYS[2] -- zset: id, or line break and token of a bundle -> lease deadline
local bundles = KEYS[3] -- hash: token -> packed ids and places
local bundled = KEYS[4] -- hash: token -> jobs still in the bundle
local bodies = KEYS[5] -- hash: id -> body
local items = 1 -- ARGV[1..]: token

local keys = { states = states, leased = leased, bundles = bundles, bundled = bundled, bodies = bodies }
local count = 0
for i = items, #ARGV do
  count = count + #open_bundle(keys, ARGV[i])
end
return count
