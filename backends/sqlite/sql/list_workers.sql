-- A page of workers, newest first, one more than asked for; a page backwards is in reverse order. No row: none.
select
    worker_id, namespace, instance_id, status, reason, queues, types, labels, capabilities, hostname, pid, version, platform,
    max_concurrent, queue_limit, type_limits, active, completed, failed, stats, registered_at, last_heartbeat_at, deregistered_at,
    pauses_runs, build_id
from workers
where (@namespace = '' or namespace = @namespace)
  and (@status = 0 or status = @status)
  and (@queue = '' or exists (select 1 from json_each(queues) where value = @queue))
  and (not @after or (registered_at, worker_id) < (@after_at, @after_id))
  and (not @before or (registered_at, worker_id) > (@before_at, @before_id))
order by registered_at desc, worker_id desc
limit @limit
