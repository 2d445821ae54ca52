-- The head of a lane: one step into an index that holds only runs that wait. No row: nothing in it is due.
select run_id, available_at
from runs
where lane_id = @lane_id and status in (1, 3) and available_at <= @now
order by available_at, run_id
limit @limit
