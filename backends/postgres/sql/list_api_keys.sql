-- A page of keys, newest first, one more than asked for; a page backwards is in reverse order. No row: none.
select key_id, name, role, namespaces, queues, types, worker_ids, hash, created_at, expires_at, last_used_at, revoked_at
from api_keys
where key_id > @above and key_id < @below
order by key_id desc
limit @limit
