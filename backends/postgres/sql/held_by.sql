-- What a worker holds, not locked, with what its code is to be told. No row: nothing.
select l.run_id, l.token, l.namespace, l.claimed_at, r.grace_until, coalesce(r.cancel_reason, '')
from (select * from leases where worker_id = @worker_id offset 0) l
left join lateral (
    select c.grace_until, c.cancel_reason
    from runs c
    where l.tied and c.run_id = l.run_id and c.cancel_requested_at is not null
    limit 1
) r on true
order by l.run_id
