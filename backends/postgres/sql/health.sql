-- Does the database answer, and is it one that takes writes?
select pg_is_in_recovery()
