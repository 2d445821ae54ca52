-- A schedule by its id, with its input. No row: it is not in the namespace.
select
    schedule_id, namespace, name, request_id, cron_expr, time_zone, enabled, task_queue, workflow_type, version, retry_policy,
    start_to_close_us, heartbeat_us, execution_us, on_failure_workflow, on_failure_queue, tags, max_catchup, overlap, created_at, updated_at,
    next_fire_at, last_fired_at, buffered, broken, fired, completed, failed, skipped, revision, pause_reason, jitter_us, delay_us,
    concurrency_key, concurrency_limit, concurrency_scope, run_retry_policy,
    input, input_meta
from schedules
where schedule_id = @schedule_id and (@namespace = '' or namespace = @namespace)
