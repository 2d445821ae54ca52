-- A run with payloads; while it is RUNNING, its lease has the newer counts. No row: it is not in the namespace.
select
    {r.run_columns},
    case when l.progressed = 1 then 0 else r.lease_losses end, coalesce(l.steps, r.steps), coalesce(l.bytes, r.bytes),
    p.input, p.input_meta, p.output, p.output_meta
from runs r
join payloads p on p.run_id = r.run_id
left join leases l on l.run_id = r.run_id
where r.run_id = @run_id and r.namespace = @namespace
