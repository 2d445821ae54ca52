-- Locks leases, in the order in which runs are locked, so that the statements after it see them as they are now. No row: nobody holds them.
select run_id from leases where run_id = any(@run_ids) order by run_id desc for update
