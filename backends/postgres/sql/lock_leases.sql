-- Locks leases, in the order in which runs are locked, so that later statements see their present state. No row: none
-- is held.
select run_id from leases where run_id = any(@run_ids) order by run_id desc for update
