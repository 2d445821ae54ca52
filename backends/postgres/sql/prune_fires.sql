-- Deletes records of old ticks. Always one row: how many were deleted.
with old as materialized ( -- materialized as in prune_workers
    select schedule_id, tick
    from fires
    where fired_at < @before
    order by fired_at
    limit @limit
    for update skip locked
),
gone as (delete from fires where (schedule_id, tick) in (select schedule_id, tick from old) returning tick)
select count(*) from gone
