-- A run with all its columns: one that comes from another run, a schedule, a retry or an import, or that has two
-- deadlines. No row changed: as for insert_run.
insert into runs ({run_columns}, lease_losses, steps, bytes, lane_id, expires_at, tied)
values ({@run_columns}, @lease_losses, @steps, @bytes, @lane_id, @expires_at, @tied)
on conflict do nothing
