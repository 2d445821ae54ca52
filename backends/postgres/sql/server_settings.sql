-- The server's durability settings (synchronous_commit before this store sets its own), and the server's own defaults
-- for transactions, which apply behind a pooler.
select current_setting('server_version_num')::int, current_setting('fsync'),
       current_setting('synchronous_commit'), current_setting('full_page_writes'),
       current_setting('default_transaction_isolation')
