-- The last attempt of a step that was written under the token. No row: none was.
select
    step_id, run_id, name, kind, status, attempt, failures, latest, sequence, input, input_meta, output, output_meta,
    error, token, worker_id, created_at, started_at, finished_at, timeout_at, retry_at, wake_at, duration_us, retry_policy,
    signal_name, timed_out, child_run_id, awaited, overridden_by, override_reason, settled, branch, begun_in
from steps
where run_id = @run_id and name = @name and token = @token
order by attempt desc
limit 1
