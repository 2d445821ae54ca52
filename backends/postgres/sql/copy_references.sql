-- Which tables refer to which, by table. No row: none do.
select distinct t.relname::text, f.relname::text
from pg_constraint k
join pg_class t on t.oid = k.conrelid
join pg_class f on f.oid = k.confrelid
where k.contype = 'f' and t.relnamespace = to_regnamespace(quote_ident(current_schema()))
order by 1, 2
