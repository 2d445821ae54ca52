-- The run waits for a slot of its key, out of its lane. Always one row.
update runs set gated = 1, held_at = available_at, available_at = null where run_id = @run_id
