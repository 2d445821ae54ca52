-- Before runs are deleted: what they were answered for stays known, if that was asked for lately. No row changed: nothing was.
insert into past_requests (namespace, request_id, run_id, made_at, task_queue, workflow_type, external_id, content)
select namespace, request_id, run_id, made_at, task_queue, workflow_type, external_id,
       case when workflow_type = '' then convert_from(input, 'UTF8') else '' end
from requests
where run_id = any(@run_ids::uuid[]) and made_at >= @since
union all
select r.namespace, r.request_id, r.run_id, m.made_at, r.task_queue, r.workflow_type, r.external_id, ''
from unnest(@run_ids::uuid[], @made_at::bigint[]) as m (run_id, made_at)
join runs r on r.run_id = m.run_id
where r.request_id <> '' and m.made_at >= @since
  and not exists (select from requests q where q.namespace = r.namespace and q.request_id = r.request_id)
on conflict do nothing
