-- Deletes the tags of a run. No row changed: it had none.
delete from run_tags where run_id = @run_id
