-- Waiting runs by lane: PENDING, SLEEPING, due, and since when. No row: none waits.
select
    l.task_queue, l.workflow_type, l.requirements,
    sum(r.status = 1), sum(r.status = 3), sum(r.available_at <= @now), min(r.available_at)
from lanes l
join runs r on r.lane_id = l.lane_id and r.status in (1, 3)
where l.namespace = @namespace and (@task_queue = '' or l.task_queue = @task_queue)
group by l.lane_id
