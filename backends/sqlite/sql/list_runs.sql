-- A page of runs, newest first, one more than asked for; a page backwards is in reverse order. No row: none.
select
    {r.run_columns},
    case when l.progressed = 1 then 0 else r.lease_losses end, coalesce(l.steps, r.steps), coalesce(l.bytes, r.bytes)
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
