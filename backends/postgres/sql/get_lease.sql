-- The leases of runs that are locked, locked as well against results that are just being recorded. No row: nobody holds them.
select run_id, token, worker_id, claimed_at, steps, bytes, progressed
from leases
where run_id = any(@run_ids)
order by run_id desc
for update
