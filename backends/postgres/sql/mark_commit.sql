-- Has the commit wait for the disk, and for the standbys that commits here wait for: one that has written nothing waits for nobody. Always one row.
select pg_logical_emit_message(true, 'kagzi', '')
