-- Runs that contradict themselves. No row: none.
select 'run', run_id, case
    when status not in (1, 3) then 'does not wait, but has a time at which it is due'
    else 'is kept from the workers, but has a time at which it is due' end
from runs
where coalesce(available_at, suspect_at) is not null and (status not in (1, 3) or paused or gated)
union all
select 'run', run_id, 'waits, but has no time at which it is due'
from runs
where status in (1, 3) and available_at is null and suspect_at is null and not paused and not gated
  and not (status = 3 and (waiting_for like 'signal:%' or waiting_for like 'child:%'))
union all
select 'run', run_id, 'is paused, and has no time at which it would be due'
from runs
where status in (1, 3) and paused and held_at is null
  and not (status = 3 and (waiting_for like 'signal:%' or waiting_for like 'child:%'))
union all
select 'run', r.run_id, 'waits for a signal or a child, but none of its steps does'
from runs r
where r.status = 3 and (r.waiting_for like 'signal:%' or r.waiting_for like 'child:%') and r.available_at is null and r.suspect_at is null and r.held_at is null
  and not exists (
    select from steps s
    where s.run_id = r.run_id and s.status in (1, 2) and s.status = 2 and s.kind in (3, 100) and s.awaited <> 0)
union all
select 'run', run_id, 'is kept from the workers, but does not wait'
from runs
where (paused or gated) and status not in (1, 3)
union all
select 'run', run_id, 'waits for a place of its key, but has ' || case when concurrency_key = '' then 'no key' else 'no place in the line' end
from runs
where gated and (concurrency_key = '' or held_at is null)
union all
select 'run', run_id, 'has a place of a key that it does not need one of'
from runs
where has_place and status <= 3 and (concurrency_key = '' or concurrency_scope <> 1 or gated)
union all
select 'run', run_id, 'was claimed, but has no place of its key'
from runs
where concurrency_scope = 1 and not has_place and (status in (2, 3) or status = 1 and started_at is not null and origin <> 3)
union all
select 'run', run_id, 'has a place of its key, but was not claimed and continues no run'
from runs
where has_place and status = 1 and started_at is null and continued_from is null
union all
select 'run', run_id, 'has a time at which it would be due, but nothing keeps it from the workers'
from runs
where held_at is not null and not paused and not gated
union all
select 'run', run_id, case
    when suspect_at is not null then 'waits apart, but is no suspect and no build has diverged from it'
    else 'is a suspect or diverged, but workers may take it as if it were not' end
from runs
where (suspect = '' and diverged = '') = (suspect_at is not null) and (suspect_at is not null or available_at is not null)
union all
select 'run', run_id, 'has reports of divergence without builds, or builds without reports'
from runs
where (divergences = '') <> (diverged = '')
union all
select 'run', run_id, 'expires at another time than its deadline and its grace say'
from runs
where expires_at is distinct from case when paused or deadline_at is null or grace_until < deadline_at then grace_until else deadline_at end
union all
select 'run', run_id, 'does not say that its end concerns others'
from runs
where not tied and (concurrency_key <> '' or parent_run_id is not null or schedule_id <> '' or cancel_requested_at is not null)
union all
select 'run', r.run_id, 'does not say that its end concerns the children that it started'
from runs r
where not r.tied and exists (select from steps s where s.run_id = r.run_id and s.kind = 3 and s.status in (1, 2) and s.status = 2)
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
where not exists (select from namespaces n where n.namespace = r.namespace)
union all
select 'run', r.run_id, 'has no payload row'
from runs r
where not exists (select from payloads p where p.run_id = r.run_id)
