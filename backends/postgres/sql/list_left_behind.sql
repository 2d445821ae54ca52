-- Leases of OFFLINE workers, earliest first, without locks: whether the worker was lost, and when to free them. It
-- looks at one lease of each worker that has any. No row: none.
with recursive holders (worker_id) as (
    (select worker_id from leases order by worker_id limit 1)
    union all
    select (select l.worker_id from leases l where l.worker_id > h.worker_id order by l.worker_id limit 1)
    from holders h
    where h.worker_id is not null
)
select l.run_id, l.worker_id, w.reason = 2, case w.reason when 2 then w.last_heartbeat_at + l.heartbeat_us else w.deregistered_at end as free_at
from holders h
cross join lateral (select * from workers where worker_id = h.worker_id offset 0) w
cross join lateral (select * from leases where worker_id = h.worker_id and w.status = 3 offset 0) l
order by free_at, l.run_id
limit @limit
