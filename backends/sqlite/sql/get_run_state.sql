-- A run without payloads, with its lease if it has one. No row: it is not in the namespace.
select
    {r.run_columns},
    r.lease_losses, coalesce(l.steps, r.steps), coalesce(l.bytes, r.bytes),
    r.lane_id, r.final_token, r.tied, coalesce(l.settled, r.settled), l.token, l.worker_id, l.claimed_at, l.progressed
from runs r
left join leases l on l.run_id = r.run_id
where r.run_id = @run_id and (@namespace = '' or r.namespace = @namespace)
