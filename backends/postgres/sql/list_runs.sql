-- A page of runs, newest first, one more than asked for; a page backwards is in reverse order. No row: none.
select
    {r.run_columns},
    case when l.progressed then 0 else r.lease_losses end, coalesce(l.steps, r.steps), coalesce(l.bytes, r.bytes)
from runs r
left join leases l on l.run_id = r.run_id
where r.namespace = @namespace
  and (@statuses::smallint[] is null or r.status = any(@statuses))
  and (@types::text[] is null or r.workflow_type = any(@types))
  and (@queues::text[] is null or r.task_queue = any(@queues))
  and (@created_after::bigint is null or r.created_at > @created_after)
  and (@created_before::bigint is null or r.created_at < @created_before)
  and (@tag_keys::text[] is null or not exists (
      select from unnest(@tag_keys, @tag_values::text[]) as t (key, value)
      where not exists (
          select from run_tags g
          where g.namespace = r.namespace and g.key = t.key and g.value = t.value and g.run_id = r.run_id)))
  and (@parent_run_id::uuid is null or r.parent_run_id = @parent_run_id)
  and (@schedule_id = '' or r.schedule_id = @schedule_id)
  and (@worker_id = '' or r.worker_id = @worker_id)
  and (@search = '' or r.run_id between @search_first and @search_last or starts_with(r.external_id, @search))
  and r.run_id > @above and r.run_id < @below
order by r.run_id desc
limit @limit
