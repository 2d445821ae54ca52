-- Sets parameters for the transaction alone: behind a pooler its session is somebody else's afterwards.
select set_config(name, value, true) from unnest(@names::text[], @values::text[]) as s (name, value)
