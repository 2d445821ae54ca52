-- Where the runs stand that a lost worker still holds because of their own heartbeat timeout, and when that is over. No row: there are none.
select
    r.run_id, r.namespace, r.task_queue, r.status,
    l.steps, l.bytes, l.progressed, r.attempts, r.failures, r.lease_losses,
    r.retry_policy, r.start_to_close_us, r.final_token, l.token, l.worker_id, l.claimed_at, l.heartbeat_us,
    w.last_heartbeat_at + l.heartbeat_us
from leases l
join workers w on w.worker_id = l.worker_id
join runs r on r.run_id = l.run_id
where l.heartbeat_us > 0 and w.status = 3 and w.reason = 2
order by l.run_id
