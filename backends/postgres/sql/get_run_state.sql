-- Locks runs and reads them without payloads. Runs are locked before any of their other rows, so that nobody else ends
-- or makes their leases; the newest first, so that a transaction that ends children and one that ends a child with its
-- parent lock in the same order. No row: none exists.
select
    {r.run_columns},
    r.lease_losses, r.steps, r.bytes,
    r.lane_id, r.final_token, r.tied, r.settled
from runs r
where r.run_id = any(@run_ids)
order by r.run_id desc
for no key update
