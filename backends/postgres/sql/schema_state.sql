-- Whether the schema is there, whether it holds our migrations, and whether anything at all. Always one row.
select current_schema() is not null,
       to_regclass(quote_ident(current_schema()) || '.schema_migrations') is not null,
       (select count(*) from pg_class where relnamespace = to_regnamespace(quote_ident(current_schema())) and relkind in ('r', 'p'))
