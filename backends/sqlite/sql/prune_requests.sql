-- Deletes the recorded requests of a run. No row changed: it had none.
delete from requests where run_id = @run_id
