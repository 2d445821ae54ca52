-- Users of the schema's tables whose transaction has been open for a while, oldest first.
select a.pid, coalesce(a.application_name, ''), extract(epoch from clock_timestamp() - a.xact_start)::bigint
from pg_stat_activity a
where a.pid <> pg_backend_pid() and a.xact_start < clock_timestamp() - interval '200 milliseconds' and exists (
    select from pg_locks l join pg_class c on c.oid = l.relation
    where l.pid = a.pid and l.granted and c.relnamespace = to_regnamespace(quote_ident(current_schema())))
order by a.xact_start
limit 3
