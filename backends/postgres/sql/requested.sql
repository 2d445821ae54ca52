-- The run that a request made or was answered with. The subquery is written as in insert_run. No row: the request is
-- new.
(select run_id from runs where namespace = @namespace and request_id >= @request_id and request_id <= @request_id and request_id <> ''
 order by request_id limit 1)
union all
select run_id from requests where namespace = @namespace and request_id = @request_id
union all
select run_id from past_requests where namespace = @namespace and request_id = @request_id
limit 1
