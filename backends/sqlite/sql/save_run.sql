-- Writes what can change of a run. While it has a lease, the lease holds the counts. Always one row.
update runs
set status = @status, attempts = @attempts, failures = @failures, lease_losses = @lease_losses,
    steps = case when @held then steps else @steps end, bytes = case when @held then bytes else @bytes end, error = @error,
    available_at = @available_at, started_at = @started_at, finished_at = @finished_at, worker_id = @worker_id, waiting_for = @waiting_for,
    note = @note, paused = @paused, gated = @gated, held_at = @held_at, pinned = @pinned, cancel_requested_at = @cancel_requested_at,
    cancel_reason = @cancel_reason, grace_until = @grace_until, expires_at = @expires_at, continued_as = @continued_as, tied = @tied,
    final_token = @final_token
where run_id = @run_id
