-- Those of the runs that are still due, now that their concurrency keys are locked. No row: none.
select run_id from runs where run_id = any(@run_ids::uuid[]) and status + 0 in (1, 3) and coalesce(available_at <= @now, false)
