-- A worker takes the run. Always one row, for the writer has just seen it wait.
update runs
set status = 2, available_at = null, waiting_for = '', worker_id = @worker_id, started_at = coalesce(started_at, @now)
where run_id = @run_id
