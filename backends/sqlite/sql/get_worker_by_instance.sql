-- The worker that a process registered as. No row: it is a new process, or one that names no instance.
select
    worker_id, namespace, instance_id, status, reason, queues, types, labels, capabilities, hostname, pid, version, platform,
    max_concurrent, queue_limit, type_limits, active, completed, failed, stats, registered_at, last_heartbeat_at, deregistered_at
from workers
where namespace = @namespace and instance_id = @instance_id and instance_id <> ''
