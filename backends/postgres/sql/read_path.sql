-- The existing schemas on the session's search_path, in its order. Always one row.
select current_schemas(false)::text[]
