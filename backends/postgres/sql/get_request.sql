-- The earlier answer to the request, or to a start with this run id. Subqueries are written as in insert_run. No row:
-- the request is new.
select r.run_id, false, false, r.task_queue, r.workflow_type, r.external_id, p.input, p.input_meta
from (
    select * from runs
    where namespace = @namespace and request_id >= @request_id and request_id <= @request_id and request_id <> ''
    order by request_id limit 1) r
join payloads p on p.run_id = r.run_id
union all
select run_id, true, false, task_queue, workflow_type, external_id, input, input_meta
from requests
where namespace = @namespace and request_id = @request_id
union all
select run_id, true, true, task_queue, workflow_type, external_id, null, ''
from past_requests
where namespace = @namespace and request_id = @request_id
union all
select r.run_id, false, false, r.task_queue, r.workflow_type, r.external_id, p.input, p.input_meta
from runs r
join payloads p on p.run_id = r.run_id
where r.run_id = @run_id and r.namespace = @namespace
limit 1
