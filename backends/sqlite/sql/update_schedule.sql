-- Writes what can change of a schedule. Always one row.
update schedules
set name = @name, cron_expr = @cron_expr, time_zone = @time_zone, enabled = @enabled, task_queue = @task_queue,
    workflow_type = @workflow_type, version = @version, input = @input, input_meta = @input_meta, retry_policy = @retry_policy,
    start_to_close_us = @start_to_close_us, heartbeat_us = @heartbeat_us, execution_us = @execution_us,
    on_failure_workflow = @on_failure_workflow, on_failure_queue = @on_failure_queue, tags = @tags, max_catchup = @max_catchup,
    overlap = @overlap, updated_at = @updated_at, next_fire_at = @next_fire_at, last_fired_at = @last_fired_at, buffered = @buffered,
    broken = @broken, fired = @fired, completed = @completed, failed = @failed, skipped = @skipped, revision = @revision,
    pause_reason = @pause_reason, jitter_us = @jitter_us, delay_us = @delay_us,
    concurrency_key = @concurrency_key, concurrency_limit = @concurrency_limit, concurrency_scope = @concurrency_scope, run_retry_policy = @run_retry_policy
where schedule_id = @schedule_id
