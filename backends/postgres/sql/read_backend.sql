-- The process id of the session's backend. Always one row.
select pg_backend_pid()
