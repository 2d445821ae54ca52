-- Requests of deleted runs that were made long ago. No row changed: there are none.
delete from past_requests
where (namespace, request_id) in (
    select namespace, request_id
    from past_requests
    where made_at < @before
    order by made_at, namespace, request_id
    limit @limit)
