-- Whether the schema holds our migrations, and anything at all. Always one row.
select to_regclass(quote_ident(current_schema()) || '.schema_migrations') is not null,
       (select count(*) from pg_class where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p'))
