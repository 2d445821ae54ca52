-- The columns of all tables to copy, by table and name. The table standing is about the file itself.
select t.name, c.name, c.type, c.pk
from sqlite_schema t, pragma_table_info(t.name) c
where t.type = 'table' and t.name not like 'sqlite\_%' escape '\' and t.name <> 'standing'
order by t.name, c.name
