-- The length of the whole list. Always one row.
select count(*)
from steps
where run_id = @run_id and (@name = '' or name = @name)
  and (@statuses::smallint[] is null or status = any(@statuses)) and (not @latest or latest)
