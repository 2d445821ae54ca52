-- Makes a run in one statement that reads nothing: the common start. No row changed: the request, the external id or
-- the run id is in use; read more.
insert into runs (
    run_id, namespace, external_id, request_id, lane_id, task_queue, workflow_type, version, status, priority, bytes,
    created_at, available_at, deadline_at, expires_at, retry_policy, start_to_close_us, heartbeat_us, execution_us, tags, requirements,
    on_failure_workflow, on_failure_queue, concurrency_key, concurrency_limit, parent_run_id, parent_step_id, traceparent, tied,
    worker_id, started_at, run_retry_policy
)
values (
    @run_id, @namespace, @external_id, @request_id, @lane_id, @task_queue, @workflow_type, @version, @status, @priority, @bytes,
    @created_at, @available_at, @deadline_at, @expires_at, @retry_policy, @start_to_close_us, @heartbeat_us, @execution_us, @tags, @requirements,
    @on_failure_workflow, @on_failure_queue, @concurrency_key, @concurrency_limit, @parent_run_id, @parent_step_id, @traceparent, @tied,
    @worker_id, @started_at, @run_retry_policy
)
on conflict do nothing
