-- The common end of a run. Always one row.
update runs
set status = 4, finished_at = @now, steps = @steps, bytes = @bytes, settled = @settled, final_token = @final_token,
    lease_losses = case when @progressed then 0 else lease_losses end
where run_id = @run_id
