-- Runs that contradict themselves. No row: none does.
select 'run', run_id, case
    when status in (1, 3) then 'waits, but has no time at which it is due'
    else 'does not wait, but has a time at which it is due' end
from runs
where (status in (1, 3)) <> (available_at is not null)
union all
select 'run', run_id, case when status > 3 then 'has ended, but at no time' else 'has not ended, but has an end' end
from runs
where (status > 3) <> (finished_at is not null)
union all
select 'run', r.run_id, 'stands in no lane of its own queue, type, requirements and priority'
from runs r
left join lanes l on l.lane_id = r.lane_id
where l.lane_id is null or l.namespace <> r.namespace or l.task_queue <> r.task_queue or l.workflow_type <> r.workflow_type
   or l.requirements <> r.requirements or l.priority <> r.priority
union all
select 'run', r.run_id, 'is in a namespace that is not there'
from runs r
where not exists (select 1 from namespaces n where n.namespace = r.namespace)
union all
select 'run', r.run_id, 'has no payload row'
from runs r
where not exists (select 1 from payloads p where p.run_id = r.run_id)
