-- Writes what can change of a lease. Always one row.
update leases set steps = @steps, bytes = @bytes, progressed = @progressed, tied = @tied, suspect = @suspect, pausing = @pausing,
    settled = @settled, owed_from = @owed_from
where run_id = @run_id
