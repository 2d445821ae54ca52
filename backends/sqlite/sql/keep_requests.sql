-- Before a run is deleted: what it was answered for stays known, if that was asked for lately. No row changed: nothing was.
insert into past_requests (namespace, request_id, run_id, made_at, task_queue, workflow_type, external_id, content)
select namespace, request_id, run_id, made_at, task_queue, workflow_type, external_id,
       case when workflow_type = '' then cast(input as text) else '' end
from requests
where run_id = @run_id and made_at >= @since
union all
select r.namespace, r.request_id, r.run_id, @made_at, r.task_queue, r.workflow_type, r.external_id, ''
from runs r
where r.run_id = @run_id and r.request_id <> '' and @made_at >= @since
  and not exists (select 1 from requests q where q.namespace = r.namespace and q.request_id = r.request_id)
on conflict do nothing
