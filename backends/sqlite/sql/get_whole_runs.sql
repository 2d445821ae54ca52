-- Runs by their ids, with payloads, in no order, of any namespace. No row for a run that does not exist.
select
    {r.run_columns},
    case when l.progressed = 1 then 0 else r.lease_losses end, coalesce(l.steps, r.steps), coalesce(l.bytes, r.bytes),
    p.input, p.input_meta, p.output, p.output_meta
from runs r
join payloads p on p.run_id = r.run_id
left join leases l on l.run_id = r.run_id
where r.run_id in (select unhex(value) from json_each(@run_ids))
