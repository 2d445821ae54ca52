-- Whether the schema is one that can say how the database stands. Always one row.
select to_regclass(quote_ident(current_schema()) || '.standing') is not null
