-- Undoes take_room.sql in the same transaction. Always one row.
delete from standing where name = 'health:' || pg_backend_pid()
