-- Of these runs those that are due, now that the keys are locked by which they go. No row: none is any more.
select run_id from runs where run_id = any(@run_ids::uuid[]) and status + 0 in (1, 3) and coalesce(coalesce(available_at, suspect_at) <= @now, false)
