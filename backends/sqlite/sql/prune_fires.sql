-- Deletes records of old ticks. No row changed: none.
delete from fires
where (schedule_id, tick) in (
    select schedule_id, tick
    from fires
    where fired_at < @before
    order by fired_at, schedule_id, tick
    limit @limit)
