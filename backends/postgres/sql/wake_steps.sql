-- Timers that are over, when their run is claimed or its lease ends. No row changed: none was due.
update steps
set status = 3, finished_at = wake_at
where run_id = @run_id and status in (1, 2) and status = 2 and kind = 2 and wake_at <= @now
