-- The database, for people. Always one row.
select current_setting('server_version'), pg_database_size(current_database()),
       current_setting('synchronous_commit'), current_setting('fsync'), current_setting('full_page_writes')
