-- How many runs are RUNNING, by queue. No row: none.
select task_queue, count(*)
from leases
where namespace = @namespace and (@task_queue = '' or task_queue = @task_queue)
group by task_queue
