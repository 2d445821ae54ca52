-- The run leaves its lane and waits for a slot of its key. Always one row.
update runs set gated = 1, held_at = available_at, available_at = null where run_id = @run_id
