-- A new key. Always one row.
insert into api_keys (key_id, name, role, namespaces, queues, types, worker_ids, hash, created_at, expires_at)
values (@key_id, @name, @role, @namespaces, @queues, @types, @worker_ids, @hash, @created_at, @expires_at)
