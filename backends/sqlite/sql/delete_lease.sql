-- Ends the lease of a run that was read before. No row: it was not held.
delete from leases where run_id = @run_id
