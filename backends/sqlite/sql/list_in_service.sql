-- The ONLINE workers of a namespace, as far as they say which runs they may have. No row: none.
select worker_id, queues, types, labels, capabilities, build_id
from workers
where namespace = @namespace and status = 1
order by worker_id
