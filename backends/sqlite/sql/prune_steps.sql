-- Deletes the steps of a run. No row changed: it had none.
delete from steps where run_id = @run_id
