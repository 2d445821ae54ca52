-- Deletes old audit events; their ids begin with their time. No row changed: none.
delete from audit
where event_id in (
    select event_id
    from audit
    where event_id < @before
    order by event_id
    limit @limit)
