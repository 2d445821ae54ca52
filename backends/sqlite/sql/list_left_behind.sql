-- Leases of OFFLINE workers, earliest first: whether the worker was lost, and when to free them. It looks at one lease
-- of each worker that has any. No row: none.
with recursive holders (worker_id) as (
    select min(worker_id) from leases
    union all
    select (select min(l.worker_id) from leases l where l.worker_id > h.worker_id) from holders h where h.worker_id is not null
)
select l.run_id, w.reason = 2, iif(w.reason = 2, w.last_heartbeat_at + l.heartbeat_us, w.deregistered_at) as free_at
from holders h
cross join workers w on w.worker_id = h.worker_id
cross join leases l on l.worker_id = h.worker_id
where w.status = 3
order by free_at, l.run_id
limit @limit
