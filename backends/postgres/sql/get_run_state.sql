-- Where runs stand, locked before anything else of them, so that nobody else ends or makes their leases: the newest first, so that who ends
-- children and who ends one of them with its parent meet in the same order. No row: there is none of them.
select
    {r.run_columns},
    r.lease_losses, r.steps, r.bytes,
    r.lane_id, r.final_token, r.tied
from runs r
where r.run_id = any(@run_ids)
order by r.run_id desc
for no key update
