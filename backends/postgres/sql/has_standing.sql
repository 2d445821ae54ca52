-- Whether the schema has the table standing. Always one row.
select to_regclass(quote_ident(current_schema()) || '.standing') is not null
