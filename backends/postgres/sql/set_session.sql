-- Sets the parameters of a new session. If the server supports it, large payloads are compressed fast, and no
-- transaction ends because of its length.
select set_config(name, value, false) from unnest(@names::text[], @values::text[]) as s (name, value)
union all
select set_config(name, 'lz4', false) from pg_settings where name = 'default_toast_compression' and 'lz4' = any(enumvals)
union all
select set_config(name, '0', false) from pg_settings where name = 'transaction_timeout'
