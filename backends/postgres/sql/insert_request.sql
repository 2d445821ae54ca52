-- Remembers that a request was answered with an earlier run. A rival who made the request at the same moment makes it a unique violation.
insert into requests (namespace, request_id, run_id, task_queue, workflow_type, external_id, input, input_meta)
values (@namespace, @request_id, @run_id, @task_queue, @workflow_type, @external_id, @input, @input_meta)
