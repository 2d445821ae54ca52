-- Remembers what a request was answered with, where the run does not tell what was asked for. A rival who made the request
-- at the same moment makes it a unique violation.
insert into requests (namespace, request_id, run_id, made_at, task_queue, workflow_type, external_id, input, input_meta)
values (@namespace, @request_id, @run_id, @made_at, @task_queue, @workflow_type, @external_id, @input, @input_meta)
