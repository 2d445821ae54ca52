-- The progress of a run. No row: it does not exist.
select r.run_id, r.namespace, r.workflow_type, r.status, coalesce(l.steps, r.steps)
from runs r
left join leases l on l.run_id = r.run_id
where r.run_id = @run_id
