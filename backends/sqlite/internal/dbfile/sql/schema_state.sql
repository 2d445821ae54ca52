-- The application id of the file, its schema, and whether it holds anything. Always one row.
select (select application_id from pragma_application_id), (select user_version from pragma_user_version), (select count(*) from sqlite_schema)
