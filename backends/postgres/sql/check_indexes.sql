-- Indexes that the database itself marks as invalid. No row: none.
select c.relname
from pg_index i
join pg_class c on c.oid = i.indexrelid
where c.relnamespace = to_regnamespace(quote_ident(current_schema())) and not (i.indisvalid and i.indisready)
