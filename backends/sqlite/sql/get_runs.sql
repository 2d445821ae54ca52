-- Runs by their ids, in no order. No row for a run that does not exist in the namespace.
select
    {r.run_columns},
    case when l.progressed = 1 then 0 else r.lease_losses end, coalesce(l.steps, r.steps), coalesce(l.bytes, r.bytes)
from runs r
left join leases l on l.run_id = r.run_id
where r.run_id in (select unhex(value) from json_each(@run_ids)) and r.namespace = @namespace
