-- The length of the whole list. Always one row.
select count(*)
from workers
where (@namespace = '' or namespace = @namespace)
  and (@status::smallint = 0 or status = @status)
  and (@queue::text = '' or queues::jsonb ? @queue)
