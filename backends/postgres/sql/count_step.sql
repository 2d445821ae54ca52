-- Adds to what the run has recorded under its lease. Always one row.
update leases
set steps = steps + @steps, bytes = bytes + @bytes, progressed = progressed or @progressed
where run_id = @run_id
