-- Every run, or every open run, with its progress, newest first. No row: none.
select r.run_id, r.namespace, r.workflow_type, r.status, coalesce(l.steps, r.steps)
from runs r
left join leases l on l.run_id = r.run_id
where @every or r.status <= 3
order by r.run_id desc
