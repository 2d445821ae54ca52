-- Ends the lease of a locked run. No row: it was not held.
delete from leases where run_id = @run_id
