-- Writes what can change of attempts, which are looked up one by one; the output only if it is known. Always one row for
-- each.
update steps t
set status = s.status, failures = s.failures, output = case when s.paid then s.output else t.output end,
    output_meta = case when s.paid then s.output_meta else t.output_meta end, error = s.error, token = s.token, worker_id = s.worker_id,
    started_at = s.started_at, finished_at = s.finished_at, timeout_at = s.timeout_at, retry_at = s.retry_at, wake_at = s.wake_at,
    duration_us = s.duration_us, retry_policy = s.retry_policy, signal_name = s.signal_name, timed_out = s.timed_out,
    child_run_id = s.child_run_id, awaited = s.awaited, settled = s.settled, latest = t.latest and not s.superseded
from (
    select s.*, h.at
    from unnest(
        @step_id::uuid[], @status::smallint[], @failures::int[], @output::bytea[], @output_meta::text[], @error::text[], @token::uuid[],
        @worker_id::text[], @started_at::bigint[], @finished_at::bigint[], @timeout_at::bigint[], @retry_at::bigint[], @wake_at::bigint[],
        @duration_us::bigint[], @retry_policy::text[], @signal_name::text[], @timed_out::bool[], @child_run_id::uuid[], @awaited::bigint[],
        @paid::bool[], @superseded::bool[], @settled::bigint[]
    ) as s (
        step_id, status, failures, output, output_meta, error, token, worker_id, started_at, finished_at, timeout_at, retry_at, wake_at,
        duration_us, retry_policy, signal_name, timed_out, child_run_id, awaited, paid, superseded, settled
    )
    cross join lateral (select ctid as at from steps where step_id = s.step_id offset 0) h
) s
where t.ctid = s.at
