-- Needs disk space that no deleted row has left, as a client's write may; drop_room.sql follows in the same
-- transaction. Always one row.
insert into standing (name, value, at)
select 'health:' || pg_backend_pid(), string_agg(random()::text, ''), 0 from generate_series(1, 8192)
