-- Runs by their ids, whole, in no order, whatever their namespace. A run that is not there: no row.
select
    {r.run_columns},
    case when l.progressed = 1 then 0 else r.lease_losses end, coalesce(l.steps, r.steps), coalesce(l.bytes, r.bytes),
    p.input, p.input_meta, p.output, p.output_meta
from runs r
join payloads p on p.run_id = r.run_id
left join leases l on l.run_id = r.run_id
where r.run_id in (select unhex(value) from json_each(@run_ids))
