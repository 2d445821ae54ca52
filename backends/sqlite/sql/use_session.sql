-- Moves a session's last use forward. No row changed: it was used later, or is gone.
update sessions
set used_at = @used_at, expires_at = @expires_at
where session_id = @session_id and used_at < @used_at
