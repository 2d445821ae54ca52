-- What the server promises about the disk; synchronous_commit is the server's own, before ours is set. And how transactions begin, which is the
-- server's own behind a pooler.
select current_setting('server_version_num')::int, current_setting('fsync'),
       current_setting('synchronous_commit'), current_setting('full_page_writes'),
       current_setting('default_transaction_isolation')
