-- The status of a worker. No row: it is unknown.
select status from workers where worker_id = @worker_id
