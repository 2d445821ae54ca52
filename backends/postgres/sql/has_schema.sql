-- Whether a schema of that name exists. Always one row.
select exists (select from pg_namespace where nspname = @schema)
