-- The steps that started these children. No row: the run started none of them.
with started as materialized (
    select s.step_id
    from unnest(@children::uuid[]) as c (child_run_id)
    join steps s on s.child_run_id = c.child_run_id and s.child_run_id is not null
)
select
    s.step_id, s.run_id, s.name, s.kind, s.status, s.attempt, s.failures, s.latest, s.sequence, s.input, s.input_meta, s.output,
    s.output_meta, s.error, s.token, s.worker_id, s.created_at, s.started_at, s.finished_at, s.timeout_at, s.retry_at, s.wake_at,
    s.duration_us, s.retry_policy, s.signal_name, s.timed_out, s.child_run_id, s.awaited, s.overridden_by, s.override_reason, s.settled, s.branch, s.begun_in
from started t
join steps s on s.step_id = t.step_id
where s.run_id = @run_id and s.kind = 3 and s.latest
