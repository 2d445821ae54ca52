-- The runs of a queue that wait apart and from which the same builds have diverged ('': none), soonest first. No row:
-- there are none.
select run_id, suspect_at, workflow_type, requirements, priority, suspect
from runs
where namespace = @namespace and task_queue = @task_queue and diverged = @diverged and suspect_at is not null
order by suspect_at, run_id
limit @limit
