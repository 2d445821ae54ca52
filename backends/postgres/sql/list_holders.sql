-- The first runs by id that have a place of a run's concurrency key, by a lease or until their end. No row: none.
select h.run_id
from runs r
cross join lateral (
    select l.run_id
    from leases l
    where l.namespace = r.namespace and l.workflow_type = r.workflow_type and l.concurrency_key = r.concurrency_key and l.concurrency_key <> ''
    union all
    select o.run_id
    from runs o
    where o.namespace = r.namespace and o.workflow_type = r.workflow_type and o.concurrency_key = r.concurrency_key and o.has_place and o.status <= 3) h
where r.run_id = @run_id
order by h.run_id
limit @limit
