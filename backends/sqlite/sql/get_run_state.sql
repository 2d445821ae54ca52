-- Where a run stands, with its lease if it has one. No row: it is not in the namespace.
select
    r.run_id, r.namespace, r.external_id, r.request_id, r.task_queue, r.workflow_type, r.version, r.status, r.priority, r.attempts, r.failures,
    r.lease_losses, coalesce(l.steps, r.steps), coalesce(l.bytes, r.bytes), r.error,
    r.created_at, r.available_at, r.started_at, r.finished_at, r.deadline_at, r.scheduled_at, r.worker_id, r.waiting_for, r.note,
    r.paused, r.gated, r.held_at, r.pinned, r.cancel_requested_at, r.cancel_reason, r.grace_until, r.retry_policy,
    r.start_to_close_us, r.heartbeat_us, r.execution_us, r.tags, r.requirements, r.on_failure_workflow, r.on_failure_queue,
    r.concurrency_key, r.concurrency_limit, r.parent_run_id, r.parent_step_id, r.parent_close, r.traceparent,
    r.origin, r.schedule_id, r.failed_run_id, r.retried_from, r.continued_from, r.continued_as, r.named_deadline_at,
    r.lane_id, r.final_token, r.tied, l.token, l.worker_id, l.claimed_at, l.progressed
from runs r
left join leases l on l.run_id = r.run_id
where r.run_id = @run_id and (@namespace = '' or r.namespace = @namespace)
