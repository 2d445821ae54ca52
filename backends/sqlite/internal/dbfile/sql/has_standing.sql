-- Whether the schema has the table standing. No row: it is older.
select 1 from sqlite_schema where type = 'table' and name = 'standing'
