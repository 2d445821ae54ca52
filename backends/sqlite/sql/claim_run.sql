-- Assigns the run to a worker. No row changed: it needs a place of its concurrency key, which must be counted first.
update runs
set status = 2, available_at = null, waiting_for = '', worker_id = @worker_id, started_at = coalesce(started_at, @now)
where run_id = @run_id and (@counted or concurrency_key = '' or has_place)
