-- Schemas that hold Kagzi's tables, as far as this role can see: those on the session's search_path first, in its
-- order, the others with place 0. The first row is the schema where new tables would go; its name is empty if the path
-- names no existing schema.
select coalesce(current_schema()::text, '') as name, -1 as place
union all
(select n.nspname::text, coalesce(p.place, 0)::int
from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
left join unnest(current_schemas(false)) with ordinality as p (name, place) on p.name = n.nspname
where c.relname = 'schema_migrations' and c.relkind = 'r'
  and has_schema_privilege(n.oid, 'usage') and has_table_privilege(c.oid, 'select')
  and (select count(*) from pg_catalog.pg_attribute a
       where a.attrelid = c.oid and not a.attisdropped and a.attname in ('number', 'name', 'checksum', 'applied_at')) = 4
order by p.place nulls last, n.nspname)
