-- Changes the secrets of a hook. Always one row.
update hooks
set secret = @secret, old_secret = @old_secret, old_until = @old_until, rotated_at = @rotated_at
where hook_id = @hook_id
