-- When a run ends, so do its steps. No row changed: none was open.
update steps
set status = 4, error = @error, finished_at = @now, timeout_at = null
where run_id = @run_id and status in (1, 2)
