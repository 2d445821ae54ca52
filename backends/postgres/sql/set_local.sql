-- Sets parameters for this transaction only, because behind a pooler the session is shared with others.
select set_config(name, value, true) from unnest(@names::text[], @values::text[]) as s (name, value)
