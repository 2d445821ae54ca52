-- Fails the attempts that still run when a lease ends. No row changed: none ran.
update steps
set status = 4, error = @error, finished_at = @now, timeout_at = null
where run_id = @run_id and status in (1, 2) and status = 2 and kind = 1
