-- Remembers that a request was answered with an earlier run. Zero rows: a rival's start took the request id.
insert into requests (namespace, request_id, run_id, task_queue, workflow_type, external_id, input, input_meta)
values (@namespace, @request_id, @run_id, @task_queue, @workflow_type, @external_id, @input, @input_meta)
on conflict do nothing
