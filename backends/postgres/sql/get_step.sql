-- An attempt by its id. No row: the namespace has none with that id.
select
    step_id, run_id, name, kind, status, attempt, failures, latest, sequence, input, input_meta, output, output_meta,
    error, token, worker_id, created_at, started_at, finished_at, timeout_at, retry_at, wake_at, duration_us, retry_policy,
    signal_name, timed_out, child_run_id, awaited, overridden_by, override_reason, settled, branch, begun_in
from steps
where step_id = @step_id and exists (select from runs r where r.run_id = steps.run_id and r.namespace = @namespace)
