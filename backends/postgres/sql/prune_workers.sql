-- Deletes workers that have been OFFLINE for long and have no leases. Always one row: how many were deleted.
-- evaluated once: a plan that evaluates it for each row would find other rows in place of deleted ones
with old as materialized (
    select w.worker_id
    from workers w
    where w.status = 3 and w.deregistered_at < @before and not exists (select from leases l where l.worker_id = w.worker_id)
    order by w.deregistered_at, w.worker_id
    limit @limit
    for update skip locked
),
gone as (delete from workers where worker_id in (select worker_id from old) returning worker_id)
select count(*) from gone
