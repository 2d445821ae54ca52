-- Undoes take_room.sql before anybody has seen it. Always one row.
delete from standing where name = 'health:' || pg_backend_pid()
