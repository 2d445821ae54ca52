-- The number of this database's schema in notifications and advisory locks, which all schemas share. Always one row.
select to_regnamespace(quote_ident(current_schema()))::oid::bigint
