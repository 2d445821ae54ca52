-- Records the result of a new step, the common case, in one insert. No row changed: the step has begun before; read
-- more.
insert into steps (
    step_id, run_id, name, kind, status, attempt, sequence, output, output_meta, token, worker_id, created_at, started_at, finished_at
)
values (@step_id, @run_id, @name, 1, 3, 1, @sequence, @output, @output_meta, @token, @worker_id, @now, @started_at, @now)
on conflict do nothing
