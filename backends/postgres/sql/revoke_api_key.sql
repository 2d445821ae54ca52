-- Revokes a key. Always one row.
update api_keys set revoked_at = @now where key_id = @key_id
