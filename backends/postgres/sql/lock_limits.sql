-- Claims of a queue under limits come one after the other, so that each counts what the others have taken. Always one row.
select pg_advisory_xact_lock(@key)
