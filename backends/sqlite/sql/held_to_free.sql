-- The first of what a worker holds; with heard_at only that which the run's own heartbeat timeout since then does not keep. No row: nothing.
select run_id
from leases
where worker_id = @worker_id and (@heard_at is null or @heard_at + heartbeat_us <= @now)
order by run_id
limit @limit
