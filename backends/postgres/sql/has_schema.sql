-- Whether there is a schema of that name. Always one row.
select exists (select from pg_namespace where nspname = @schema)
