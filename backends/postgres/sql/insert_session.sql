-- A new session of a key. Always one row.
insert into sessions (session_id, key_id, hash, created_at, used_at, expires_at)
values (@session_id, @key_id, @hash, @created_at, @used_at, @expires_at)
