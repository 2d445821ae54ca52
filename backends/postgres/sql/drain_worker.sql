-- Makes the worker DRAINING. Always one row.
update workers set status = 2 where worker_id = @worker_id
