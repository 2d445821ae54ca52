-- Where the notifications of this database's schema go: notifications and advisory locks are shared by all schemas. Always one row.
select to_regnamespace(quote_ident(current_schema()))::oid::bigint
