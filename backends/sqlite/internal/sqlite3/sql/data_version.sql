-- A number that changes whenever another connection has changed the database. Always one row.
pragma data_version
