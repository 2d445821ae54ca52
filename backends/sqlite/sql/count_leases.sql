-- How many runs are RUNNING, by queue and type, for the writer to remember. No row: none is.
select namespace, task_queue, workflow_type, count(*)
from leases
group by namespace, task_queue, workflow_type
