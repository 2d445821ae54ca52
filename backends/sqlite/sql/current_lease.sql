-- The lease of a run: NULL if it has none. No row: the run is not in the namespace.
select r.status, l.token
from runs r
left join leases l on l.run_id = r.run_id
where r.run_id = @run_id and r.namespace = @namespace
