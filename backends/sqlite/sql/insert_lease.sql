-- The lease of a run that was just claimed. Always one row.
insert into leases (run_id, token, worker_id, namespace, task_queue, workflow_type, claimed_at, heartbeat_us, steps, bytes)
select run_id, @token, @worker_id, namespace, task_queue, workflow_type, @now, heartbeat_us, steps, bytes
from runs
where run_id = @run_id
