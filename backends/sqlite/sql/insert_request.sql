-- Records what a request was answered with, if the run does not show what was asked for.
insert into requests (namespace, request_id, run_id, made_at, task_queue, workflow_type, external_id, input, input_meta)
values (@namespace, @request_id, @run_id, @made_at, @task_queue, @workflow_type, @external_id, @input, @input_meta)
