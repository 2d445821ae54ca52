-- The end of a run. Always one row.
update runs
set status = @status, error = @error, finished_at = @now, available_at = null, waiting_for = '', worker_id = @worker_id,
    steps = @steps, bytes = @bytes, failures = @failures, lease_losses = @lease_losses, final_token = @final_token
where run_id = @run_id
