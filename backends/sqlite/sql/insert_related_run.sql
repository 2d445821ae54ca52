-- A start that comes from another run, from a schedule or from a former life. No row: as with insert_run.
insert into runs (
    run_id, namespace, external_id, request_id, lane_id, task_queue, workflow_type, version, status, priority, steps, bytes,
    created_at, available_at, deadline_at, expires_at, scheduled_at, retry_policy, start_to_close_us, heartbeat_us, execution_us, tags,
    requirements, on_failure_workflow, on_failure_queue, concurrency_key, concurrency_limit, parent_run_id, parent_step_id, parent_close,
    traceparent, origin, schedule_id, failed_run_id, retried_from, continued_from, tied
)
select
    @run_id, @namespace, @external_id, @request_id, @lane_id, @task_queue, @workflow_type, @version, 1, @priority, @steps, @bytes,
    @created_at, @available_at, @deadline_at, @expires_at, @scheduled_at, @retry_policy, @start_to_close_us, @heartbeat_us, @execution_us, @tags,
    @requirements, @on_failure_workflow, @on_failure_queue, @concurrency_key, @concurrency_limit, @parent_run_id, @parent_step_id, @parent_close,
    @traceparent, @origin, @schedule_id, @failed_run_id, @retried_from, @continued_from, @tied
where (@request_id = '' or not exists (select 1 from requests where namespace = @namespace and request_id = @request_id))
  and (not @never or @external_id = '' or not exists (
      select 1 from runs where namespace = @namespace and external_id = @external_id and external_id <> '' and origin = 0))
on conflict do nothing
