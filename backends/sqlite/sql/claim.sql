-- The first due run of a lane: one lookup in an index that holds only waiting runs. No row: none is due.
select run_id, available_at
from runs
where lane_id = @lane_id and status in (1, 3) and available_at <= @now
order by available_at, run_id
limit @limit
