-- The steps of a run that are open or awaited, without payloads. No row: the run is due.
with waiting as materialized (
    select step_id from steps where run_id = @run_id and status in (1, 2)
    union all -- without an order, because Postgres 17 would otherwise read all steps in order instead of these
    select step_id from steps where run_id = @run_id and awaited <> 0 and status not in (1, 2)
)
select
    s.step_id, s.run_id, s.name, s.kind, s.status, s.attempt, s.failures, s.latest, s.sequence, null::bytea, '', null::bytea, '', s.error,
    s.token, s.worker_id, s.created_at, s.started_at, s.finished_at, s.timeout_at, s.retry_at, s.wake_at, s.duration_us, s.retry_policy,
    s.signal_name, s.timed_out, s.child_run_id, s.awaited, s.overridden_by, s.override_reason, s.settled, s.branch, s.begun_in
from waiting w
join steps s on s.step_id = w.step_id
order by s.sequence, s.attempt
