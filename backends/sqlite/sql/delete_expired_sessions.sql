-- Deletes sessions that have expired, earliest first. No row changed: none has.
delete from sessions
where session_id in (
    select session_id from sessions where expires_at <= @now order by expires_at, session_id limit @limit
)
