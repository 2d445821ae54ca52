-- The first open step of a group, without payloads, from the index of open steps; ended steps cost nothing. No row: all
-- have ended.
select
    step_id, run_id, name, kind, status, attempt, failures, latest, sequence, null, '', null, '',
    error, token, worker_id, created_at, started_at, finished_at, timeout_at, retry_at, wake_at, duration_us, retry_policy,
    signal_name, timed_out, child_run_id, awaited, overridden_by, override_reason, settled, branch, begun_in
from steps
where run_id = @run_id and status in (1, 2) and +awaited = @awaited
order by step_id
limit 1
