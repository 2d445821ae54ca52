-- Who counts the leases of a concurrency key, or frees one, holds its lock until the commit; so nobody waits at a gate that has just been
-- passed. In an order of their own, that of the numbers. One row a key.
select pg_advisory_xact_lock(key) from unnest(@keys::bigint[]) as k (key)
