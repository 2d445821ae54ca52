-- Sets the parameters of a session that was just opened, and has large payloads packed fast where the server knows how.
select set_config(name, value, false) from unnest(@names::text[], @values::text[]) as s (name, value)
union all
select set_config(name, 'lz4', false) from pg_settings where name = 'default_toast_compression' and 'lz4' = any(enumvals)
