-- The newest run with the external id, with payloads. No row: none, or it was deleted.
select
    {r.run_columns},
    case when l.progressed = 1 then 0 else r.lease_losses end, coalesce(l.steps, r.steps), coalesce(l.bytes, r.bytes),
    p.input, p.input_meta, p.output, p.output_meta
from runs r
join payloads p on p.run_id = r.run_id
left join leases l on l.run_id = r.run_id
where r.namespace = @namespace and r.external_id = @external_id and r.external_id <> ''
order by r.run_id desc
limit 1
