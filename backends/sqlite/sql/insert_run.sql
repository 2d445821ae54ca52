-- The common start, in one statement. No row: the request or the external id is known, or the id itself; look closer.
insert into runs (
    run_id, namespace, external_id, request_id, lane_id, task_queue, workflow_type, version, status, priority, bytes,
    created_at, available_at, deadline_at, expires_at, retry_policy, start_to_close_us, heartbeat_us, execution_us, tags, requirements,
    on_failure_workflow, on_failure_queue, concurrency_key, concurrency_limit, parent_run_id, parent_step_id, traceparent, tied
)
select
    @run_id, @namespace, @external_id, @request_id, @lane_id, @task_queue, @workflow_type, @version, 1, @priority, @bytes,
    @created_at, @available_at, @deadline_at, @expires_at, @retry_policy, @start_to_close_us, @heartbeat_us, @execution_us, @tags, @requirements,
    @on_failure_workflow, @on_failure_queue, @concurrency_key, @concurrency_limit, @parent_run_id, @parent_step_id, @traceparent, @tied
where (@request_id = '' or not exists (select 1 from requests where namespace = @namespace and request_id = @request_id))
  and (not @never or @external_id = '' or not exists (
      select 1 from runs where namespace = @namespace and external_id = @external_id and external_id <> '' and origin = 0))
on conflict do nothing
