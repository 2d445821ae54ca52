-- A lease for each RUNNING run and for no other. No row: so it is.
select 'run', r.run_id, 'is RUNNING without a lease'
from runs r
where r.status = 2 and not exists (select from leases l where l.run_id = r.run_id)
union all
select 'lease of run', l.run_id, 'is for a run that is not RUNNING'
from leases l
where not exists (select from runs r where r.run_id = l.run_id and r.status = 2)
union all
select 'lease of run', l.run_id, 'does not say of the run what the run says'
from leases l
join runs r on r.run_id = l.run_id
where l.namespace <> r.namespace or l.task_queue <> r.task_queue or l.workflow_type <> r.workflow_type or l.worker_id <> r.worker_id
union all
select 'lease of run', l.run_id, 'is held by a worker that is not there'
from leases l
where not exists (select from workers w where w.worker_id = l.worker_id)
