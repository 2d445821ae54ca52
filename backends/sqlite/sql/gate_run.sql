-- The run waits for a slot of its key, out of its lane. Always one row.
update runs set gated = 1, held_at = coalesce(available_at, suspect_at), available_at = null, suspect_at = null where run_id = @run_id
