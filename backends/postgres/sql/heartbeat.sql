-- A sign of life: one row, and no index on what it changes. No row: the worker is unknown or OFFLINE.
update workers
set active = @active, completed = completed + @completed, failed = failed + @failed,
    stats = case when @stats = '' then stats else @stats end,
    last_heartbeat_at = case when @now < last_heartbeat_at then last_heartbeat_at + 1 else @now end -- later, although the clock was set back
where worker_id = @worker_id and status <> 3
returning status
