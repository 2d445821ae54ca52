-- Makes all workers OFFLINE. No row: all were.
update workers set status = 3, reason = @reason, active = 0, deregistered_at = @now where status <> 3
