-- A worker takes a run that waits apart, as in claim_run.sql.
update runs
set status = 2, suspect_at = null, waiting_for = '', worker_id = @worker_id, started_at = coalesce(started_at, @now)
where run_id = @run_id and (@counted or concurrency_key = '' or has_place)
