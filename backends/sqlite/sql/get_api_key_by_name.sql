-- The key with a name that is not revoked. No row: the name is free.
select key_id, name, role, namespaces, queues, types, worker_ids, hash, created_at, expires_at, last_used_at, revoked_at
from api_keys
where name = @name and revoked_at is null
