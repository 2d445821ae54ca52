-- What any other report about a step adds to its run. Always one row.
update leases
set steps = steps + @steps, bytes = bytes + @bytes, progressed = max(progressed, @progressed)
where run_id = @run_id
