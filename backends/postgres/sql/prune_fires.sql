-- Records of ticks that fired long ago. Always one row: how many are gone.
with old as materialized ( -- looked for once, as prune_workers does
    select schedule_id, tick
    from fires
    where fired_at < @before
    order by fired_at
    limit @limit
    for update skip locked
),
gone as (delete from fires where (schedule_id, tick) in (select schedule_id, tick from old) returning tick)
select count(*) from gone
