-- Where a run stands, whoever holds it. No row: it is not in the namespace.
select
    r.run_id, r.namespace, r.task_queue, r.status,
    coalesce(l.steps, r.steps), coalesce(l.bytes, r.bytes), coalesce(l.progressed, 0), r.attempts, r.failures, r.lease_losses,
    r.retry_policy, r.start_to_close_us, r.final_token, l.token, l.worker_id, l.claimed_at, l.heartbeat_us
from runs r
left join leases l on l.run_id = r.run_id
where r.run_id = @run_id and (@namespace = '' or r.namespace = @namespace)
