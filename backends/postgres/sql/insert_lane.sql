-- No row: it exists already.
insert into lanes (namespace, task_queue, workflow_type, requirements, priority)
values (@namespace, @task_queue, @workflow_type, @requirements, @priority)
on conflict do nothing
returning lane_id
