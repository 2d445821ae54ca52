-- Ends the oldest sessions of a key. No row changed: it has no more than it may keep.
delete from sessions
where session_id in (
    select session_id from sessions where key_id = @key_id order by session_id desc limit @limit offset @keep
)
