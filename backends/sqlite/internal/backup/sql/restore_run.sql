-- How far a run has come. No row: it is not there.
select r.run_id, r.namespace, r.workflow_type, r.status, coalesce(l.steps, r.steps)
from runs r
left join leases l on l.run_id = r.run_id
where r.run_id = @run_id
