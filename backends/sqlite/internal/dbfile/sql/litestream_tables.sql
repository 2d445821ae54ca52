-- A row if Litestream has replicated the file.
select name
from sqlite_schema
where name like '\_litestream\_%' escape '\'
limit 1
