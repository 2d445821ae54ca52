-- What lost workers still hold because of the runs' own heartbeat timeout, not locked, and when that is over. No row: nothing.
select l.run_id, l.worker_id, w.last_heartbeat_at + l.heartbeat_us
from leases l
join workers w on w.worker_id = l.worker_id
where l.heartbeat_us > 0 and w.status = 3 and w.reason = 2
order by l.run_id
