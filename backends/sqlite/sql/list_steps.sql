-- A page of attempts, one more than asked for; a page backwards is in reverse order. No row: none.
with page as materialized (
    select step_id as id
    from steps
    where run_id = @run_id and (@name = '' or name = @name)
      and (@statuses = '' or status in (select value from json_each(@statuses))) and (not @latest or latest = 1)
      and (not @after or (sequence, attempt) > (@after_sequence, @after_attempt))
      and (not @before or (sequence, attempt) < (@before_sequence, @before_attempt))
    order by sequence asc, attempt asc
    limit @limit
)
select
    step_id, run_id, name, kind, status, attempt, failures, latest, sequence, input, input_meta, output, output_meta,
    error, token, worker_id, created_at, started_at, finished_at, timeout_at, retry_at, wake_at, duration_us, retry_policy,
    signal_name, timed_out, child_run_id, awaited, overridden_by, override_reason, settled, branch, begun_in
from page
join steps on step_id = id
order by sequence asc, attempt asc
