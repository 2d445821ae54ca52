-- Runs by their ids, in no order. No row for a run that does not exist in the namespace. They are looked up one by one:
-- if statistics do not know of a new backlog yet, reading all runs of the namespace looks as cheap.
select
    {r.run_columns},
    case when l.progressed then 0 else r.lease_losses end, coalesce(l.steps, r.steps), coalesce(l.bytes, r.bytes)
from (select distinct run_id from unnest(@run_ids::uuid[]) as ids (run_id)) i
cross join lateral (select * from runs where run_id = i.run_id offset 0) r
left join lateral (select progressed, steps, bytes from leases where run_id = i.run_id offset 0) l on true
where r.namespace = @namespace
