-- Schedules that must fire, earliest first. No row: none.
select
    s.schedule_id, s.namespace, s.name, s.request_id, s.cron_expr, s.time_zone, s.enabled, s.task_queue, s.workflow_type, s.version, s.retry_policy,
    s.start_to_close_us, s.heartbeat_us, s.execution_us, s.on_failure_workflow, s.on_failure_queue, s.tags, s.max_catchup, s.overlap, s.created_at, s.updated_at,
    s.next_fire_at, s.last_fired_at, s.buffered, s.broken, s.fired, s.completed, s.failed, s.skipped, s.revision, s.pause_reason, s.jitter_us, s.delay_us,
    s.concurrency_key, s.concurrency_limit, s.concurrency_scope, s.run_retry_policy
from schedules s
join namespaces n on n.namespace = s.namespace
where s.enabled = 1 and s.broken = '' and s.next_fire_at is not null and s.next_fire_at + s.delay_us > 0 and n.enabled = 1
order by s.next_fire_at + s.delay_us, s.schedule_id
limit @limit
