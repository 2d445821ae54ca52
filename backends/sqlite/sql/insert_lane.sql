-- On first use; the writer remembers it. Always one row.
insert into lanes (namespace, task_queue, workflow_type, requirements, priority)
values (@namespace, @task_queue, @workflow_type, @requirements, @priority)
returning lane_id
