-- Leases that contradict their run: each RUNNING run has one, no other run does, and no concurrency key has more than
-- its limit. No row: none.
select 'run', r.run_id, 'is RUNNING without a lease'
from runs r
where r.status = 2 and not exists (select 1 from leases l where l.run_id = r.run_id)
union all
select 'lease of run', l.run_id, 'is for a run that is not RUNNING'
from leases l
where not exists (select 1 from runs r where r.run_id = l.run_id and r.status = 2)
union all
select 'lease of run', l.run_id, 'does not say of the run what the run says'
from leases l
join runs r on r.run_id = l.run_id
where l.namespace <> r.namespace or l.task_queue <> r.task_queue or l.workflow_type <> r.workflow_type or l.worker_id <> r.worker_id
   or l.tied <> r.tied or l.concurrency_key <> r.concurrency_key
union all
select 'lease of run', l.run_id, 'is held by a worker that is not there'
from leases l
where not exists (select 1 from workers w where w.worker_id = l.worker_id)
union all
select 'lease of run', min(l.run_id), 'is one of ' || count(*) || ' of a concurrency key, more than any of their runs allows'
from leases l
join runs r on r.run_id = l.run_id
where l.concurrency_key <> ''
group by l.namespace, l.workflow_type, l.concurrency_key
having count(*) > max(max(r.concurrency_limit), 1)
union all
select 'run', r.run_id, 'waits for a slot of its key, but nothing holds one'
from runs r
where r.gated and not exists (
    select 1
    from leases l
    where l.namespace = r.namespace and l.workflow_type = r.workflow_type and l.concurrency_key = r.concurrency_key and l.concurrency_key <> '')
  and not exists (
    select 1
    from runs o
    where o.namespace = r.namespace and o.workflow_type = r.workflow_type and o.concurrency_key = r.concurrency_key
      and o.status in (1, 3) and o.available_at is not null)
