-- The first runs of a lane that wait and from which these builds have diverged, as in diverged_kinds.sql. No row: none.
select r.run_id
from lanes l
join runs r on r.namespace = l.namespace and r.task_queue = l.task_queue and r.diverged = @diverged
where l.lane_id = @lane_id and r.lane_id = l.lane_id and r.suspect_at is not null and r.cancel_requested_at is null
order by r.suspect_at, r.run_id
limit @limit
