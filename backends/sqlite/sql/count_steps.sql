-- The length of the whole list. Always one row.
select count(*)
from steps
where run_id = @run_id and (@name = '' or name = @name)
  and (@statuses = '' or status in (select value from json_each(@statuses))) and (not @latest or latest = 1)
