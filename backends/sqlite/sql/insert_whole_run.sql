-- A run with all its columns: one that comes from another run, from a schedule or from a former life, has two deadlines, or is imported as it
-- stands elsewhere. No row changed: as with insert_run.
insert into runs ({run_columns}, lease_losses, steps, bytes, lane_id, expires_at, tied)
values ({@run_columns}, @lease_losses, @steps, @bytes, @lane_id, @expires_at, @tied)
on conflict do nothing
