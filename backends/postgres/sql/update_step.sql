-- What an attempt comes to. Always one row.
update steps
set status = @status, started_at = @started_at, failures = @failures, output = @output, output_meta = @output_meta, error = @error, token = @token,
    worker_id = @worker_id, finished_at = @finished_at, timeout_at = @timeout_at, retry_at = @retry_at, wake_at = @wake_at,
    duration_us = @duration_us
where step_id = @step_id
