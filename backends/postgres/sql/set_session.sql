-- Sets the parameters of a session that was just opened. Where the server knows how, large payloads are packed fast, and no transaction is ended
-- for its length.
select set_config(name, value, false) from unnest(@names::text[], @values::text[]) as s (name, value)
union all
select set_config(name, 'lz4', false) from pg_settings where name = 'default_toast_compression' and 'lz4' = any(enumvals)
union all
select set_config(name, '0', false) from pg_settings where name = 'transaction_timeout'
