-- An answer with an earlier run, to be given again for this request.
insert into requests (namespace, request_id, run_id, task_queue, workflow_type, external_id, input, input_meta)
values (@namespace, @request_id, @run_id, @task_queue, @workflow_type, @external_id, @input, @input_meta)
