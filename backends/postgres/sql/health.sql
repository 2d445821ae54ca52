-- Does the database answer, is it one that takes writes (a standby's transactions are read-only, and where a host runs out of room all may be), and
-- have its rows gone elsewhere?
select current_setting('transaction_read_only')::boolean, exists (select from standing where name in ('moved', 'filling'))
