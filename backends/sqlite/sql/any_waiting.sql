-- Whether something may have happened to steps of a run that was just claimed: a timer is due, or a step is awaited. No
-- row: nothing.
select 1 from steps where run_id = @run_id and status in (1, 2) and status = 2 and kind = 2 and wake_at <= @now
union all
select 1 from steps where run_id = @run_id and awaited <> 0
limit 1
