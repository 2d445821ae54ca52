-- A key by its id, revoked or not. No row: none was ever made.
select key_id, name, role, namespaces, queues, types, worker_ids, hash, created_at, expires_at, last_used_at, revoked_at
from api_keys
where key_id = @key_id
