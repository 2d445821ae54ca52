-- Writes what a run has recorded under its lease, and whether its end affects other rows. Always one row.
update leases set steps = @steps, bytes = @bytes, progressed = @progressed, tied = @tied where run_id = @run_id
