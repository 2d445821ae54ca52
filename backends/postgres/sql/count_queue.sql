-- What runs in a queue, by type. No row: nothing.
select workflow_type, count(*) from leases where namespace = @namespace and task_queue = @task_queue group by workflow_type
