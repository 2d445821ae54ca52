-- New attempts. Always one row for each.
insert into steps (
    step_id, run_id, name, kind, status, attempt, failures, latest, sequence, input, input_meta, output, output_meta, error, token,
    worker_id, created_at, started_at, finished_at, timeout_at, retry_at, wake_at, duration_us, retry_policy, signal_name, timed_out,
    child_run_id, awaited, overridden_by, override_reason, settled, branch, begun_in
)
select * from unnest(
    @step_id::uuid[], @run_id::uuid[], @name::text[], @kind::smallint[], @status::smallint[], @attempt::int[], @failures::int[],
    @latest::bool[], @sequence::bigint[], @input::bytea[], @input_meta::text[], @output::bytea[], @output_meta::text[], @error::text[],
    @token::uuid[], @worker_id::text[], @created_at::bigint[], @started_at::bigint[], @finished_at::bigint[], @timeout_at::bigint[],
    @retry_at::bigint[], @wake_at::bigint[], @duration_us::bigint[], @retry_policy::text[], @signal_name::text[], @timed_out::bool[],
    @child_run_id::uuid[], @awaited::bigint[], @overridden_by::text[], @override_reason::text[],
    @settled::bigint[], @branch::text[], @begun_in::bigint[]
)
