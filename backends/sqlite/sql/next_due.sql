-- When a lane's next run becomes due. NULL: none waits.
select min(available_at)
from runs
where lane_id = @lane_id and status in (1, 3) and available_at > @now
