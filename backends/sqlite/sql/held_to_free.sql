-- The first leases of a worker; with @heard_at only those whose run's own heartbeat timeout has passed since then. No
-- row: none.
select run_id
from leases
where worker_id = @worker_id and (@heard_at is null or @heard_at + heartbeat_us <= @now)
order by run_id
limit @limit
