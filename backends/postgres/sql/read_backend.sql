-- The number of the process that serves the session. Always one row.
select pg_backend_pid()
