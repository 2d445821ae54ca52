-- Shows, as long as this session lives, that a server listens on this schema. Always one row.
select pg_advisory_lock_shared(@class::int, @place::int)
