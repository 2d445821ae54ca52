-- Schedules with a due tick, even if they are paused or their namespace is disabled. No row: none.
select
    s.schedule_id, s.namespace, s.name, s.request_id, s.cron_expr, s.time_zone, s.enabled, s.task_queue, s.workflow_type, s.version, s.retry_policy,
    s.start_to_close_us, s.heartbeat_us, s.execution_us, s.on_failure_workflow, s.on_failure_queue, s.tags, s.max_catchup, s.overlap, s.created_at, s.updated_at,
    s.next_fire_at, s.last_fired_at, s.buffered, s.broken, s.fired, s.completed, s.failed, s.skipped, s.revision, s.pause_reason, s.jitter_us, s.delay_us,
    s.concurrency_key, s.concurrency_limit, s.concurrency_scope, s.run_retry_policy
from schedules s
where s.broken = '' and s.next_fire_at <= @now
order by s.next_fire_at, s.schedule_id
