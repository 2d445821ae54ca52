-- Nothing new for the worker. No row changed: it is unknown or OFFLINE.
update workers set status = 2 where worker_id = @worker_id and status <> 3
