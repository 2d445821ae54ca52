-- The name and the encoding of the database. Always one row.
select current_database()::text, pg_encoding_to_char(encoding)::text from pg_database where datname = current_database()
