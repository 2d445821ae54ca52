-- How many runs of a queue, or of one type in it, are RUNNING. Always one row.
select count(*)
from leases
where namespace = @namespace and task_queue = @task_queue and (@workflow_type = '' or workflow_type = @workflow_type)
