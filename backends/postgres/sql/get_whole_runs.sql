-- Runs by their ids, whole, in no order, whatever their namespace. A run that is not there: no row. Leases are
-- looked up one by one, however few there were when this was planned.
select
    {r.run_columns},
    case when l.progressed then 0 else r.lease_losses end, coalesce(l.steps, r.steps), coalesce(l.bytes, r.bytes),
    p.input, p.input_meta, p.output, p.output_meta
from runs r
join payloads p on p.run_id = r.run_id
left join lateral (select progressed, steps, bytes from leases where run_id = r.run_id offset 0) l on true
where r.run_id = any(@run_ids::uuid[])
