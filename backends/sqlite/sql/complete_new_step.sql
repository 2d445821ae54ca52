-- Records the result of a new step, the common case, in one insert. No row changed: the step has begun before; read
-- more.
insert into steps (
    step_id, run_id, name, kind, status, attempt, sequence, output, output_meta, token, worker_id, created_at, started_at, finished_at,
    settled, branch, begun_in
)
values (
    @step_id, @run_id, @name, 1, 3, 1, @sequence, @output, @output_meta, @token, @worker_id, @now, @started_at, @now,
    @settled, @branch, @begun_in
)
on conflict do nothing
