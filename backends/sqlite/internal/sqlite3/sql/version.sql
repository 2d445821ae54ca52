-- SQLite's version. Always one row.
select sqlite_version()
