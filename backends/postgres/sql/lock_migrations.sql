-- One server migrates; the others wait and find it done. Always one row.
select pg_advisory_xact_lock(@key)
