-- The run waits for whoever claims it next. Always one row.
update runs
set status = @status, available_at = @available_at, waiting_for = @waiting_for, worker_id = '', steps = @steps, bytes = @bytes,
    attempts = @attempts, failures = @failures, lease_losses = @lease_losses
where run_id = @run_id
