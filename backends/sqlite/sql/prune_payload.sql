-- Of a run that is deleted. Always one row.
delete from payloads where run_id = @run_id
