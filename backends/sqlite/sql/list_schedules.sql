-- A page of schedules, newest first, one more than asked for; a page backwards is in reverse order. No row: none.
select
    schedule_id, namespace, name, request_id, cron_expr, time_zone, enabled, task_queue, workflow_type, version, retry_policy,
    start_to_close_us, heartbeat_us, execution_us, on_failure_workflow, on_failure_queue, tags, max_catchup, overlap, created_at, updated_at,
    next_fire_at, last_fired_at, buffered, broken, fired, completed, failed, skipped, revision, pause_reason, jitter_us, delay_us,
    concurrency_key, concurrency_limit, concurrency_scope, run_retry_policy
from schedules
where namespace = @namespace
  and (@task_queue = '' or task_queue = @task_queue)
  and schedule_id > @above and schedule_id < @below
order by schedule_id desc
limit @limit
