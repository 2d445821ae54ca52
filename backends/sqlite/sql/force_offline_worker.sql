-- Makes the worker OFFLINE. Always one row.
update workers
set status = 3, reason = @reason, deregistered_at = @now,
    last_heartbeat_at = min(last_heartbeat_at, @now) -- the clock may have been set back
where worker_id = @worker_id
