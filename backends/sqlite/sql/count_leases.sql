-- How many runs are RUNNING, by queue and type, for the writer's cache. No row: none.
select namespace, task_queue, workflow_type, count(*)
from leases
group by namespace, task_queue, workflow_type
