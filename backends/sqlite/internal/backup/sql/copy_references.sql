-- Which tables refer to which, by table. No row: none.
select distinct t.name, f."table"
from sqlite_schema t, pragma_foreign_key_list(t.name) f
where t.type = 'table'
order by t.name, f."table"
