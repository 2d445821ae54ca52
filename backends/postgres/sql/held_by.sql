-- What a worker holds. No row: nothing.
select namespace, run_id, token from leases where worker_id = @worker_id order by run_id
