-- The first leases of a worker, not locked; with @heard_at only those whose run's own heartbeat timeout has passed
-- since then. No row: none.
select l.run_id
from (select * from leases where worker_id = @worker_id offset 0) l
where @heard_at::bigint is null or @heard_at + l.heartbeat_us <= @now
order by l.run_id
limit @limit
