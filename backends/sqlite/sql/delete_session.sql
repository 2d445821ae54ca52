-- Ends a session. No row changed: it is gone.
delete from sessions where session_id = @session_id
