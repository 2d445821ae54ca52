-- Of a run that is deleted. No row changed: it had none.
delete from signals where run_id = @run_id
