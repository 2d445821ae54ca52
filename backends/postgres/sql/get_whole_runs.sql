-- Runs by their ids, with payloads, in no order, of any namespace. No row for a run that does not exist. Leases are
-- looked up one by one, even if the planner knew of few.
select
    {r.run_columns},
    case when l.progressed then 0 else r.lease_losses end, coalesce(l.steps, r.steps), coalesce(l.bytes, r.bytes),
    p.input, p.input_meta, p.output, p.output_meta
from runs r
join payloads p on p.run_id = r.run_id
left join lateral (select progressed, steps, bytes from leases where run_id = r.run_id offset 0) l on true
where r.run_id = any(@run_ids::uuid[])
