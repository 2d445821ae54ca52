-- A page of runs, newest first, one more than asked for; the direction is turned for a page backwards. No row: nothing there.
select
    r.run_id, r.namespace, r.external_id, r.request_id, r.task_queue, r.workflow_type, r.version, r.status, r.priority, r.attempts, r.failures,
    case when l.progressed = 1 then 0 else r.lease_losses end, coalesce(l.steps, r.steps), coalesce(l.bytes, r.bytes), r.error,
    r.created_at, r.available_at, r.started_at, r.finished_at, r.deadline_at, r.scheduled_at, r.worker_id, r.waiting_for, r.note,
    r.paused, r.gated, r.held_at, r.pinned, r.cancel_requested_at, r.cancel_reason, r.grace_until, r.retry_policy,
    r.start_to_close_us, r.heartbeat_us, r.execution_us, r.tags, r.requirements, r.on_failure_workflow, r.on_failure_queue,
    r.concurrency_key, r.concurrency_limit, r.parent_run_id, r.parent_step_id, r.parent_close, r.traceparent,
    r.origin, r.schedule_id, r.failed_run_id, r.retried_from, r.continued_from, r.continued_as, r.named_deadline_at
from runs r
left join leases l on l.run_id = r.run_id
where r.namespace = @namespace
  and (@statuses = '' or r.status in (select value from json_each(@statuses)))
  and (@types = '' or r.workflow_type in (select value from json_each(@types)))
  and (@queues = '' or r.task_queue in (select value from json_each(@queues)))
  and (@created_after is null or r.created_at > @created_after)
  and (@created_before is null or r.created_at < @created_before)
  and (@tags = '' or not exists (
      select 1 from json_each(@tags) t
      where not exists (
          select 1 from run_tags g
          where g.namespace = r.namespace and g.key = t.key and g.value = t.value and g.run_id = r.run_id)))
  and (@parent_run_id is null or r.parent_run_id = @parent_run_id)
  and (@schedule_id = '' or r.schedule_id = @schedule_id)
  and (@worker_id = '' or r.worker_id = @worker_id)
  and (@search = '' or r.run_id between @search_first and @search_last or substr(r.external_id, 1, length(@search)) = @search)
  and r.run_id > @above and r.run_id < @below
order by r.run_id desc
limit @limit
