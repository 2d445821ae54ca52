-- A start that comes from another run, from a schedule or from a former life, or has two deadlines. No row changed: as with insert_run.
insert into runs (
    run_id, namespace, external_id, request_id, lane_id, task_queue, workflow_type, version, status, priority, steps, bytes,
    created_at, available_at, deadline_at, expires_at, scheduled_at, retry_policy, start_to_close_us, heartbeat_us, execution_us, tags,
    requirements, on_failure_workflow, on_failure_queue, concurrency_key, concurrency_limit, parent_run_id, parent_step_id, parent_close,
    traceparent, origin, schedule_id, failed_run_id, retried_from, continued_from, named_deadline_at, tied,
    worker_id, started_at
)
values (
    @run_id, @namespace, @external_id, @request_id, @lane_id, @task_queue, @workflow_type, @version, @status, @priority, @steps, @bytes,
    @created_at, @available_at, @deadline_at, @expires_at, @scheduled_at, @retry_policy, @start_to_close_us, @heartbeat_us, @execution_us, @tags,
    @requirements, @on_failure_workflow, @on_failure_queue, @concurrency_key, @concurrency_limit, @parent_run_id, @parent_step_id, @parent_close,
    @traceparent, @origin, @schedule_id, @failed_run_id, @retried_from, @continued_from, @named_deadline_at, @tied,
    @worker_id, @started_at
)
on conflict do nothing
