-- Applied migrations, in order. No row: none.
select number, name, checksum from schema_migrations order by number
