-- Writes what can change of a lease. Always one row.
update leases set steps = @steps, bytes = @bytes, progressed = @progressed, tied = @tied where run_id = @run_id
