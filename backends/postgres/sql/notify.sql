-- In its own transaction, because a commit with notifications takes a lock on the whole server. One row per payload.
select pg_notify(@channel, payload) from unnest(@payloads::text[]) as p (payload)
