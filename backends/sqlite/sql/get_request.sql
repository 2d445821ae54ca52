-- The earlier answer to the request, or to a start with this run id. No row: the request is new.
select r.run_id, 0, 0, r.task_queue, r.workflow_type, r.external_id, p.input, p.input_meta
from runs r
join payloads p on p.run_id = r.run_id
where r.namespace = @namespace and r.request_id = @request_id and r.request_id <> ''
union all
select run_id, 1, 0, task_queue, workflow_type, external_id, input, input_meta
from requests
where namespace = @namespace and request_id = @request_id
union all
select run_id, 1, 1, task_queue, workflow_type, external_id, null, ''
from past_requests
where namespace = @namespace and request_id = @request_id
union all
select r.run_id, 0, 0, r.task_queue, r.workflow_type, r.external_id, p.input, p.input_meta
from runs r
join payloads p on p.run_id = r.run_id
where r.run_id = @run_id and r.namespace = @namespace
limit 1
