-- The lanes of runs that wait and from which builds have diverged, and which builds; without runs that were asked to stop.
-- No row: none.
select distinct r.lane_id, l.namespace, l.task_queue, l.workflow_type, l.requirements, r.diverged
from runs r
join lanes l on l.lane_id = r.lane_id
where r.suspect_at is not null and r.diverged <> '' and r.cancel_requested_at is null
order by r.lane_id, r.diverged
