-- The worker is off. Always one row.
update workers set status = 3, reason = @reason, deregistered_at = @now where worker_id = @worker_id
