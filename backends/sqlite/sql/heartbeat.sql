-- Records a heartbeat: one row, and no indexed column. No row: the worker is unknown or OFFLINE.
update workers
set active = @active, completed = completed + @completed, failed = failed + @failed,
    stats = case when @stats = '' then stats else @stats end,
    -- later, even if the clock was set back
    last_heartbeat_at = case when @now < last_heartbeat_at then last_heartbeat_at + 1 else @now end
where worker_id = @worker_id and status <> 3
returning status
