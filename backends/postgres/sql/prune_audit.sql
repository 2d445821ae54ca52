-- Changes of long ago: their ids begin with when they were made. They are deleted by where they lie, which locked rows do not leave, and which needs
-- no index once more. Always one row: how many are gone.
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
