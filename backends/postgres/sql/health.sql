-- Whether the database answers, accepts writes (a standby is read-only, and so are some hosts when their disk is full),
-- and has not been moved to another one.
select current_setting('transaction_read_only')::boolean, exists (select from standing where name in ('moved', 'filling'))
