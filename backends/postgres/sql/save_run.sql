-- Writes what can change of a run. Always one row.
update runs
set status = @status, attempts = @attempts, failures = @failures, lease_losses = @lease_losses, steps = @steps, bytes = @bytes, error = @error,
    available_at = @available_at, started_at = @started_at, finished_at = @finished_at, expires_at = @expires_at,
    worker_id = @worker_id, waiting_for = @waiting_for, note = @note, paused = @paused, gated = @gated, held_at = @held_at, pinned = @pinned,
    cancel_requested_at = @cancel_requested_at, cancel_reason = @cancel_reason, grace_until = @grace_until, continued_as = @continued_as,
    final_token = @final_token, tied = @tied
where run_id = @run_id
