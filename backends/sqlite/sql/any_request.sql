-- Whether any start was answered with an earlier run for its request. No row: none was.
select 1 from requests limit 1
