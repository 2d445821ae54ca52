-- Of a run that is deleted. No row changed: it had no steps.
delete from steps where run_id = @run_id
