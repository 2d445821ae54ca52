-- Locks concurrency keys that no other transaction has locked; it never waits, because their holder may wait for locks
-- of this transaction. One row per key.
select pg_try_advisory_xact_lock(key) from unnest(@keys::bigint[]) as k (key)
