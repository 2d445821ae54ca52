-- The length of the whole list. Always one row.
select count(*) from schedules where namespace = @namespace and (@task_queue = '' or task_queue = @task_queue)
