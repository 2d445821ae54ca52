-- Runs that a lost worker still holds because of their own heartbeat timeout, and when that is over. No row: there are none.
select l.run_id, w.last_heartbeat_at + l.heartbeat_us
from leases l
join workers w on w.worker_id = l.worker_id
where l.heartbeat_us > 0 and w.status = 3 and w.reason = 2
order by l.run_id
