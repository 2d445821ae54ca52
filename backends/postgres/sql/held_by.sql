-- The leases of workers, not locked, with requests to cancel and pause their runs. No row: none. They are looked up one by one,
-- even if the planner knew of few leases.
select l.run_id, l.token, l.namespace, l.worker_id, l.claimed_at, r.grace_until, coalesce(r.cancel_reason, ''), l.pausing
from unnest(@worker_ids::text[]) as w (worker_id)
cross join lateral (select * from leases where worker_id = w.worker_id offset 0) l
left join lateral (
    select c.grace_until, c.cancel_reason
    from runs c
    where l.tied and c.run_id = l.run_id and c.cancel_requested_at is not null
    limit 1
) r on true
order by l.run_id
