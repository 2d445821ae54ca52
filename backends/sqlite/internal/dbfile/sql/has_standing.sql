-- Whether the schema is one that can say how the file stands. No row: it is older.
select 1 from sqlite_schema where type = 'table' and name = 'standing'
