-- The first open step of a group, without payloads, from the index of open steps; ended steps cost nothing. No row: all
-- have ended.
with open as materialized (
    select step_id, awaited from steps where run_id = @run_id and status in (1, 2)
), first as materialized (
    select step_id from open where awaited = @awaited order by step_id limit 1
)
select
    s.step_id, s.run_id, s.name, s.kind, s.status, s.attempt, s.failures, s.latest, s.sequence, null::bytea, '', null::bytea, '', s.error,
    s.token, s.worker_id, s.created_at, s.started_at, s.finished_at, s.timeout_at, s.retry_at, s.wake_at, s.duration_us, s.retry_policy,
    s.signal_name, s.timed_out, s.child_run_id, s.awaited, s.overridden_by, s.override_reason, s.settled, s.branch, s.begun_in
from first f
join steps s on s.step_id = f.step_id
