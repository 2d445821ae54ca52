-- The runs that handle another run's failure, by id. No row: none.
select
    {r.run_columns},
    case when l.progressed = 1 then 0 else r.lease_losses end, coalesce(l.steps, r.steps), coalesce(l.bytes, r.bytes)
from runs r
left join leases l on l.run_id = r.run_id
where r.failed_run_id = @run_id and r.namespace = @namespace
order by r.run_id
