-- Records an applied migration. Always one row.
insert into schema_migrations (number, name, checksum, applied_at) values (@number, @name, @checksum, clock_timestamp())
