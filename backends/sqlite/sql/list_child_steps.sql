-- The steps that started these children. No row: the run started none of them.
select
    step_id, run_id, name, kind, status, attempt, failures, latest, sequence, input, input_meta, output, output_meta,
    error, token, worker_id, created_at, started_at, finished_at, timeout_at, retry_at, wake_at, duration_us, retry_policy,
    signal_name, timed_out, child_run_id, awaited, overridden_by, override_reason, settled, branch, begun_in
from json_each(@children) child
cross join steps on child_run_id = unhex(child.value) -- one lookup for each child, not for each step
where +run_id = @run_id and kind = 3 and latest = 1
