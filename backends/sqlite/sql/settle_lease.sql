-- Writes the counts that the common steps of a commit add to their run, in one narrow row. Always one row.
update leases set steps = @steps, bytes = @bytes, settled = @settled, progressed = 1 where run_id = @run_id
