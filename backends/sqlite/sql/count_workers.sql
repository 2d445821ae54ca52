-- The length of the whole list. Always one row.
select count(*)
from workers
where (@namespace = '' or namespace = @namespace)
  and (@status = 0 or status = @status)
  and (@queue = '' or exists (select 1 from json_each(queues) where value = @queue))
