-- The first queue of the first ONLINE worker that serves a type. No row: none does.
select queues::jsonb ->> 0
from workers
where namespace = @namespace and status <> 3 and status = 1 and types::jsonb ? @workflow_type
order by worker_id
limit 1
