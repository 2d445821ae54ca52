-- The first of what a worker holds, not locked; with heard_at only that which the run's own heartbeat timeout since then does not keep. No row:
-- nothing.
select l.run_id
from (select * from leases where worker_id = @worker_id offset 0) l
where @heard_at::bigint is null or @heard_at + l.heartbeat_us <= @now
order by l.run_id
limit @limit
