-- What was applied, in order. No row: nothing.
select number, name, checksum from schema_migrations order by number
