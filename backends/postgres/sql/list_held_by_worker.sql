-- What a worker holds, not locked, by the runs' ids. No row: nothing.
select run_id, token, claimed_at from leases where worker_id = @worker_id order by run_id
