-- What workers still hold that are OFFLINE, whether as lost, and from when on it is to be freed, earliest first. It looks at one lease of each
-- worker that holds any. No row: nothing.
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
