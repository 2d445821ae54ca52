-- How many servers listen on this schema. Always one row.
select count(*)
from pg_locks
where locktype = 'advisory' and granted and objsubid = 2 and classid = @class::int::oid and objid = @place::int::oid
  and database = (select oid from pg_database where datname = current_database())
