-- Nothing new for the worker. Always one row.
update workers set status = 2 where worker_id = @worker_id
