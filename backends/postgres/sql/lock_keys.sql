-- A transaction that counts the leases of a concurrency key, or frees one, holds the key's lock until the commit, so
-- that no run waits for a slot that has just become free. The locks are taken in the order of their numbers. One row
-- per key.
select pg_advisory_xact_lock(key) from unnest(@keys::bigint[]) as k (key)
