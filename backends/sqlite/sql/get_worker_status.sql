-- Whether a worker may get runs. No row: it is unknown.
select status from workers where worker_id = @worker_id
