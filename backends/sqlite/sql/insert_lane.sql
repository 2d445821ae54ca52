-- Makes a lane on its first use; the writer caches it. Always one row.
insert into lanes (namespace, task_queue, workflow_type, requirements, priority)
values (@namespace, @task_queue, @workflow_type, @requirements, @priority)
returning lane_id
