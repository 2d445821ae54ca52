-- The locks of concurrency keys as far as nobody else has them, for who holds what their holder may want. One row a key.
select pg_try_advisory_xact_lock(key) from unnest(@keys::bigint[]) as k (key)
