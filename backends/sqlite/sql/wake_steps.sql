-- Completes timers and signal waits whose time has passed, when their run is claimed or its lease ends. No row changed:
-- none.
update steps
set status = 3, finished_at = wake_at, timed_out = kind = 100
where run_id = @run_id and status in (1, 2) and status = 2 and kind in (2, 100) and wake_at <= @now
