-- The end of a lease whose run is locked. No row: it was not held.
delete from leases where run_id = @run_id
