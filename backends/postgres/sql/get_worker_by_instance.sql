-- The worker of a process. No row: the process is new, or names no instance.
select
    worker_id, namespace, instance_id, status, reason, queues, types, labels, capabilities, hostname, pid, version, platform,
    max_concurrent, queue_limit, type_limits, active, completed, failed, stats, registered_at, last_heartbeat_at, deregistered_at,
    pauses_runs, build_id
from workers
where namespace = @namespace and instance_id = @instance_id and instance_id <> ''
for update
