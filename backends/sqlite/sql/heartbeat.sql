-- A sign of life: one row, and no index on what it changes. No row: the worker is unknown or OFFLINE.
update workers
set active = @active, completed = completed + @completed, failed = failed + @failed,
    stats = case when @stats = '' then stats else @stats end, last_heartbeat_at = max(last_heartbeat_at, @now)
where worker_id = @worker_id and status <> 3
returning status
