-- Deletes the payloads of a run. Always one row.
delete from payloads where run_id = @run_id
