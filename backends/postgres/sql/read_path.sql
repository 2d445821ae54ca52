-- The schemas on the session's search_path that are there, in its order. Always one row.
select current_schemas(false)::text[]
