-- A session by its id. No row: it was ended or deleted, or never made.
select session_id, key_id, hash, created_at, used_at, expires_at
from sessions
where session_id = @session_id
