-- Runs by their ids, in no order. A run that is not there, or elsewhere: no row. They are looked up one by one, whatever the statistics
-- know of a backlog that has just come: by these it looks as cheap to read all that the namespace has.
select
    r.run_id, r.namespace, r.external_id, r.request_id, r.task_queue, r.workflow_type, r.version, r.status, r.priority, r.attempts, r.failures,
    case when l.progressed then 0 else r.lease_losses end, coalesce(l.steps, r.steps), coalesce(l.bytes, r.bytes), r.error,
    r.created_at, r.available_at, r.started_at, r.finished_at, r.deadline_at, r.worker_id, r.waiting_for, r.retry_policy,
    r.start_to_close_us, r.heartbeat_us, r.execution_us, r.tags, r.requirements, r.on_failure_workflow, r.on_failure_queue,
    r.concurrency_key, r.concurrency_limit, r.parent_run_id, r.parent_step_id, r.traceparent,
    r.scheduled_at, r.note, r.paused, r.gated, r.held_at, r.pinned, r.cancel_requested_at, r.cancel_reason, r.grace_until, r.parent_close,
    r.origin, r.schedule_id, r.failed_run_id, r.retried_from, r.continued_from, r.continued_as, r.named_deadline_at
from (select distinct run_id from unnest(@run_ids::uuid[]) as ids (run_id)) i
cross join lateral (select * from runs where run_id = i.run_id offset 0) r
left join lateral (select progressed, steps, bytes from leases where run_id = i.run_id offset 0) l on true
where r.namespace = @namespace
