-- The run that a request made or was answered with. No row: the request is new.
select run_id from runs where namespace = @namespace and request_id = @request_id and request_id <> ''
union all
select run_id from requests where namespace = @namespace and request_id = @request_id
union all
select run_id from past_requests where namespace = @namespace and request_id = @request_id
