-- Where the run of a lease stands. No row: the token is not the current one.
select
    r.run_id, r.namespace, r.task_queue, r.status,
    l.steps, l.bytes, l.progressed, r.attempts, r.failures, r.lease_losses,
    r.retry_policy, r.start_to_close_us, r.final_token, l.token, l.worker_id, l.claimed_at, l.heartbeat_us
from leases l
join runs r on r.run_id = l.run_id
where l.run_id = @run_id and l.token = @token and (@namespace = '' or l.namespace = @namespace)
