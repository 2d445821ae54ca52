-- The latest attempts, by sequence, up to enough bytes; always at least the first. Before each comes the sequence of
-- the last of all. No row: nothing is left.
with sizes as materialized (
    select
        step_id, sequence,
        sum(200 + coalesce(length(input), 0) + coalesce(length(output), 0) + octet_length(error)) over (order by sequence)
        - (200 + coalesce(length(input), 0) + coalesce(length(output), 0) + octet_length(error)) as before,
        max(sequence) over () as last
    from steps
    where run_id = @run_id and latest = 1 and sequence >= @sequence
)
select
    sizes.last,
    s.step_id, s.run_id, s.name, s.kind, s.status, s.attempt, s.failures, s.latest, s.sequence, s.input, s.input_meta, s.output, s.output_meta,
    s.error, s.token, s.worker_id, s.created_at, s.started_at, s.finished_at, s.timeout_at, s.retry_at, s.wake_at, s.duration_us,
    s.retry_policy, s.signal_name, s.timed_out, s.child_run_id, s.awaited, s.overridden_by, s.override_reason, s.settled, s.branch, s.begun_in
from sizes
join steps s on s.step_id = sizes.step_id
where sizes.before < @bytes or sizes.before = 0
order by sizes.sequence
