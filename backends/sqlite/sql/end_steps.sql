-- Ends the steps of a run that ends. A failed attempt keeps its error and time. No row changed: none was open.
update steps
set status = 4, error = case status when 2 then @error else error end, finished_at = case status when 2 then @now else finished_at end,
    timeout_at = null
where run_id = @run_id and status in (1, 2)
