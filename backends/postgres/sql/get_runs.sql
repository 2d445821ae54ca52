-- Runs by their ids, in no order. A run that is not there, or elsewhere: no row. They are looked up one by one, whatever the statistics
-- know of a backlog that has just come: by these it looks as cheap to read all that the namespace has.
select
    {r.run_columns},
    case when l.progressed then 0 else r.lease_losses end, coalesce(l.steps, r.steps), coalesce(l.bytes, r.bytes)
from (select distinct run_id from unnest(@run_ids::uuid[]) as ids (run_id)) i
cross join lateral (select * from runs where run_id = i.run_id offset 0) r
left join lateral (select progressed, steps, bytes from leases where run_id = i.run_id offset 0) l on true
where r.namespace = @namespace
