-- The lease of a run that was just claimed for the first time. Always one row.
insert into leases (
    run_id, token, worker_id, namespace, task_queue, workflow_type, claimed_at, heartbeat_us, steps, bytes, tied, concurrency_key
)
values (
    @run_id, @token, @worker_id, @namespace, @task_queue, @workflow_type, @now, @heartbeat_us, 0, @bytes, @tied, @concurrency_key
)
