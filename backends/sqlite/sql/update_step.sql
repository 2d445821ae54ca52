-- Writes what can change of an attempt. Always one row.
update steps
set status = @status, failures = @failures, output = @output, output_meta = @output_meta, error = @error, token = @token,
    worker_id = @worker_id, started_at = @started_at, finished_at = @finished_at, timeout_at = @timeout_at, retry_at = @retry_at,
    wake_at = @wake_at, duration_us = @duration_us, retry_policy = @retry_policy, signal_name = @signal_name, timed_out = @timed_out,
    child_run_id = @child_run_id, awaited = @awaited, settled = @settled
where step_id = @step_id
