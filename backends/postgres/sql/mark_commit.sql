-- Makes the commit wait for the disk and for synchronous standbys, which a commit that has written nothing does not do.
-- Always one row.
select pg_logical_emit_message(true, 'kagzi', '')
