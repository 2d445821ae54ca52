-- The columns of all tables to copy, by table and name. Migrations and standing are about the database itself.
select t.relname::text, c.attname::text, format_type(c.atttypid, null), coalesce(array_position(k.conkey, c.attnum), 0), c.attidentity <> ''
from pg_class t
join pg_attribute c on c.attrelid = t.oid and c.attnum > 0 and not c.attisdropped
left join pg_constraint k on k.conrelid = t.oid and k.contype = 'p'
where t.relnamespace = to_regnamespace(quote_ident(current_schema())) and t.relkind in ('r', 'p')
  and t.relname not in ('schema_migrations', 'standing')
order by t.relname collate "C", c.attname collate "C"
