-- A new hook, whose secret was never rotated. Always one row.
insert into hooks (hook_id, namespace, name, task_queue, workflow_type, scheme, secret, created_at)
values (@hook_id, @namespace, @name, @task_queue, @workflow_type, @scheme, @secret, @created_at)
