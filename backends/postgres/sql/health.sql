-- Does the database answer, is it one that takes writes, and have its rows gone elsewhere?
select pg_is_in_recovery(), exists (select from standing where name in ('moved', 'filling'))
