-- Deletes the signals of a run. No row changed: it had none.
delete from signals where run_id = @run_id
