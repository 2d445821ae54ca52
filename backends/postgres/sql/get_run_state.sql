-- Where runs stand, locked before anything else of them, so that nobody else ends or makes their leases: the newest first, so that who ends
-- children and who ends one of them with its parent meet in the same order. No row: there is none of them.
select
    r.run_id, r.namespace, r.external_id, r.request_id, r.task_queue, r.workflow_type, r.version, r.status, r.priority, r.attempts, r.failures,
    r.lease_losses, r.steps, r.bytes, r.error,
    r.created_at, r.available_at, r.started_at, r.finished_at, r.deadline_at, r.worker_id, r.waiting_for, r.retry_policy,
    r.start_to_close_us, r.heartbeat_us, r.execution_us, r.tags, r.requirements, r.on_failure_workflow, r.on_failure_queue,
    r.concurrency_key, r.concurrency_limit, r.parent_run_id, r.parent_step_id, r.traceparent,
    r.scheduled_at, r.note, r.paused, r.gated, r.held_at, r.pinned, r.cancel_requested_at, r.cancel_reason, r.grace_until, r.parent_close,
    r.origin, r.schedule_id, r.failed_run_id, r.retried_from, r.continued_from, r.continued_as, r.named_deadline_at,
    r.lane_id, r.final_token, r.tied
from runs r
where r.run_id = any(@run_ids)
order by r.run_id desc
for no key update
