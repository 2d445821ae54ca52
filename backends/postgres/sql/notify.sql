-- In a transaction of its own: a commit with notifications takes a lock on the whole server. One row a payload.
select pg_notify(@channel, payload) from unnest(@payloads::text[]) as p (payload)
