-- Deletes old audit events; their ids begin with their time. Rows are deleted by ctid, which a locked row keeps, and
-- which needs no second index lookup. Always one row: how many were deleted.
with gone as (
    delete from audit
    where ctid = any(array(
        select ctid
        from audit
        where event_id < @before
        order by event_id
        limit @limit
        for update skip locked))
    returning event_id)
select count(*) from gone
