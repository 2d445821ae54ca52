-- Writes what can change of a run. While it has a lease, the lease holds the counts. Always one row.
update runs
set status = @status, attempts = @attempts, failures = @failures, lease_losses = @lease_losses,
    steps = case when @held then steps else @steps end, bytes = case when @held then bytes else @bytes end,
    settled = case when @held then settled else @settled end, error = @error,
    available_at = @available_at, started_at = @started_at, finished_at = @finished_at, worker_id = @worker_id, waiting_for = @waiting_for,
    note = @note, paused = @paused, gated = @gated, held_at = @held_at, pinned = @pinned, cancel_requested_at = @cancel_requested_at,
    cancel_reason = @cancel_reason, grace_until = @grace_until, expires_at = @expires_at, continued_as = @continued_as, tied = @tied,
    final_token = @final_token, suspect = @suspect, suspect_at = @suspect_at,
    deadline_at = @deadline_at, named_deadline_at = @named_deadline_at, pausing = @pausing, paused_at = @paused_at,
    divergences = @divergences, diverged = @diverged, unreached = @unreached, owed_from = @owed_from,
    unread_signals = case
        when @ending then (select count(*) from signals s where s.run_id = @run_id and s.step_name = '') else @unread_signals end
where run_id = @run_id
