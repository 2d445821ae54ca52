-- What runs, queue by queue. No row: nothing.
select task_queue, count(*)
from leases
where namespace = @namespace and (@task_queue = '' or task_queue = @task_queue)
group by task_queue
