-- Workers that are not OFFLINE. No row: none.
select
    worker_id, namespace, instance_id, status, reason, queues, types, labels, capabilities, hostname, pid, version, platform,
    max_concurrent, queue_limit, type_limits, active, completed, failed, stats, registered_at, last_heartbeat_at, deregistered_at,
    pauses_runs, build_id
from workers
where namespace = @namespace and status <> 3
