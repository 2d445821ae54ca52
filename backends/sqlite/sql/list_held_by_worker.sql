-- Where the runs of a worker stand, by their ids. No row: it holds none.
select
    r.run_id, r.namespace, r.task_queue, r.status,
    l.steps, l.bytes, l.progressed, r.attempts, r.failures, r.lease_losses,
    r.retry_policy, r.start_to_close_us, r.final_token, l.token, l.worker_id, l.claimed_at, l.heartbeat_us
from leases l
join runs r on r.run_id = l.run_id
where l.worker_id = @worker_id
order by l.run_id
