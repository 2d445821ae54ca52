-- API keys and their sessions that Kagzi cannot have made. No row: none.
select 'key', key_id, case
    when role not between 1 and 5 then 'has a role that is not known'
    when length(hash) <> 32 then 'has no SHA-256 of a secret'
    when name = '' then 'has no name'
    when role <> 1 and namespaces = '' then 'is for all namespaces, which only an admin''s is'
    when role <> 4 and (queues <> '' or types <> '' or worker_ids <> '') then 'is for some queues, types or workers, which only a worker''s is'
    else 'expires or was revoked before it was made' end
from api_keys
where role not between 1 and 5 or length(hash) <> 32 or name = '' or role <> 1 and namespaces = ''
   or role <> 4 and (queues <> '' or types <> '' or worker_ids <> '') or expires_at <= created_at or revoked_at < created_at
union all
select 'session', session_id, case
    when length(hash) <> 32 then 'has no SHA-256 of a secret'
    else 'expires or was used before it was made' end
from sessions
where length(hash) <> 32 or expires_at <= created_at or used_at < created_at
