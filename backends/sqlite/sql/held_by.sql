-- The leases of a worker, with requests to cancel and pause their runs. No row: none.
select l.namespace, l.run_id, l.token, l.claimed_at, r.grace_until, r.cancel_reason, l.pausing
from leases l
left join runs r on l.tied = 1 and r.run_id = l.run_id
where l.worker_id = @worker_id
order by l.run_id
