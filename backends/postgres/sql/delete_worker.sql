-- Deletes an OFFLINE worker whose id goes to another process. Always one row.
delete from workers where worker_id = @worker_id and status = 3
