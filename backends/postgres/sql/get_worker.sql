-- A worker, OFFLINE or not. No row: it never registered, or was deleted.
select
    worker_id, namespace, instance_id, status, reason, queues, types, labels, capabilities, hostname, pid, version, platform,
    max_concurrent, queue_limit, type_limits, active, completed, failed, stats, registered_at, last_heartbeat_at, deregistered_at,
    pauses_runs, build_id
from workers
where worker_id = @worker_id
