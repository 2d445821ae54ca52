-- The build of a worker. No row: there is no such worker.
select build_id from workers where worker_id = @worker_id
