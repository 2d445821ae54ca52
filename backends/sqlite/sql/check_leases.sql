-- Leases that contradict their run: each RUNNING run has one, no other run does, and no concurrency key has more
-- places taken than its limit. No row: none.
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
   or l.tied <> r.tied or l.pausing <> r.pausing or l.concurrency_key <> case when r.concurrency_scope = 0 then r.concurrency_key else '' end
union all
select 'lease of run', l.run_id, 'is held by a worker that is not there'
from leases l
where not exists (select 1 from workers w where w.worker_id = l.worker_id)
union all
select 'run', min(h.run_id), 'has one of ' || count(*) || ' places of a concurrency key, more than any of their runs allows'
from (
    select run_id from leases where concurrency_key <> ''
    union all
    select run_id from runs where has_place = 1 and finished_at is null) h
join runs r on r.run_id = h.run_id
group by r.namespace, r.workflow_type, r.concurrency_key
having count(*) > max(max(r.concurrency_limit), 1)
union all
select 'run', r.run_id, 'waits for a place of its key, but nothing has one'
from runs r
where r.gated and not exists (
    select 1
    from leases l
    where l.namespace = r.namespace and l.workflow_type = r.workflow_type and l.concurrency_key = r.concurrency_key and l.concurrency_key <> '')
  and not exists (
    select 1
    from runs p
    where p.namespace = r.namespace and p.workflow_type = r.workflow_type and p.concurrency_key = r.concurrency_key and p.has_place = 1 and p.finished_at is null)
  and not exists (
    select 1
    from runs o
    where o.namespace = r.namespace and o.workflow_type = r.workflow_type and o.concurrency_key = r.concurrency_key
      and o.status in (1, 3) and coalesce(o.available_at, o.suspect_at) is not null)
