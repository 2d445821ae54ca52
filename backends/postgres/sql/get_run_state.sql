-- Where runs stand, locked in the order of their ids before anything else of them, so that nobody else ends or makes their leases. No row: there
-- is none of them.
select run_id, namespace, task_queue, status, steps, bytes, attempts, failures, lease_losses, retry_policy, start_to_close_us, final_token
from runs
where run_id = any(@run_ids)
order by run_id
for no key update
