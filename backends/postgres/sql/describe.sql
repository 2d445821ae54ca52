select current_setting('server_version'), pg_database_size(current_database())
