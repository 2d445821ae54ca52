-- Ends the leases of locked runs. No row: none was held.
delete from leases where run_id = any(@run_id::uuid[])
