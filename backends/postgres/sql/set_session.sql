-- Sets the parameters of a session that was just opened.
select set_config(name, value, false) from unnest(@names::text[], @values::text[]) as s (name, value)
