-- Waiting runs by lane: PENDING, SLEEPING, due, and since when. No row: none waits.
select
    l.task_queue, l.workflow_type, l.requirements,
    count(*) filter (where r.status = 1), count(*) filter (where r.status = 3), count(*) filter (where r.available_at <= @now), min(r.available_at)
from lanes l
join runs r on r.lane_id = l.lane_id and r.status in (1, 3)
where l.namespace = @namespace and (@task_queue = '' or l.task_queue = @task_queue)
group by l.lane_id
