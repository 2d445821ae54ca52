-- The queues of the first ONLINE worker that serves a type. No row: none does.
select queues
from workers
where namespace = @namespace and status <> 3 and status = 1 and exists (select 1 from json_each(types) where value = @workflow_type)
order by worker_id
limit 1
