-- How many runs of a queue are RUNNING, by type. No row: none.
select workflow_type, count(*) from leases where namespace = @namespace and task_queue = @task_queue group by workflow_type
