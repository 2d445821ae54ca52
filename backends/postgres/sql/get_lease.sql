-- The leases of locked runs. They are locked too, because results may be recorded at the moment. No row: none is held.
select run_id, token, worker_id, claimed_at, steps, bytes, settled, progressed
from leases
where run_id = any(@run_ids)
order by run_id desc
for update
