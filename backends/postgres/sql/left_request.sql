-- What a request asked for, if it was recorded. No row: it was not.
select task_queue, workflow_type, external_id, input, input_meta from requests where namespace = @namespace and request_id = @request_id
union all
select task_queue, workflow_type, external_id, convert_to(content, 'UTF8'), '' from past_requests where namespace = @namespace and request_id = @request_id
