-- Whether the schema exists, whether it holds our migrations, whether a table of that name is somebody else's, and how
-- many tables there are. Always one row.
with found as (
    select (select count(*) from pg_attribute a
        where a.attrelid = c.oid and not a.attisdropped and a.attname in ('number', 'name', 'checksum', 'applied_at')) = 4 as ours
    from pg_class c
    where c.relnamespace = to_regnamespace(quote_ident(current_schema())) and c.relname = 'schema_migrations' and c.relkind in ('r', 'p', 'v')
)
select current_schema() is not null,
       exists (select from found where ours),
       exists (select from found where not ours),
       (select count(*) from pg_class where relnamespace = to_regnamespace(quote_ident(current_schema())) and relkind in ('r', 'p'))
