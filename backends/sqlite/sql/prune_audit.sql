-- Changes of long ago: their ids begin with when they were made. No row changed: there are none.
delete from audit
where event_id in (
    select event_id
    from audit
    where event_id < @before
    order by event_id
    limit @limit)
