-- Completes timers whose time has passed, when their run ends. No row changed: none.
update steps
set status = 3, finished_at = wake_at, settled = -1, awaited = -1
where run_id = @run_id and status in (1, 2) and status = 2 and kind = 2 and wake_at <= @now
