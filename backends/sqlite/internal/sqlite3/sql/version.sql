-- For the check that this SQLite is sound. Always one row.
select sqlite_version()
