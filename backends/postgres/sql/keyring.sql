-- All keys that are not revoked, by id. No row: none.
select key_id, name, role, namespaces, queues, types, worker_ids, hash, created_at, expires_at, last_used_at, revoked_at
from api_keys
where revoked_at is null
order by key_id
