-- Deletes sessions that have expired, earliest first, but not those that are just being used. No row changed: none has.
with expired as materialized (
    select session_id
    from sessions
    where expires_at <= @now
    order by expires_at, session_id
    limit @limit
    for update skip locked
)
delete from sessions where session_id in (select session_id from expired)
