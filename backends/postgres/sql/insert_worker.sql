-- A new worker. Always one row.
insert into workers (
    worker_id, namespace, instance_id, status, queues, types, labels, capabilities, hostname, pid, version, platform,
    max_concurrent, queue_limit, type_limits, pauses_runs, build_id, registered_at, last_heartbeat_at
)
values (
    @worker_id, @namespace, @instance_id, 1, @queues, @types, @labels, @capabilities, @hostname, @pid, @version, @platform,
    @max_concurrent, @queue_limit, @type_limits, @pauses_runs, @build_id, @now, @now
)
