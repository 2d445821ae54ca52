-- Requests of deleted runs that were made long ago. Always one row: how many are gone.
with old as materialized ( -- looked for once, as prune_workers does
    select namespace, request_id
    from past_requests
    where made_at < @before
    order by made_at
    limit @limit
    for update skip locked
),
gone as (delete from past_requests where (namespace, request_id) in (select namespace, request_id from old) returning made_at)
select count(*) from gone
