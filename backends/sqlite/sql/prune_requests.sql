-- Of a run that is deleted. No row changed: none was answered with it.
delete from requests where run_id = @run_id
