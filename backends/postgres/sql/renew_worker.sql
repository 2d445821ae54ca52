-- A process that registers again. Always one row.
update workers
set status = @status, reason = 0, queues = @queues, types = @types, labels = @labels, capabilities = @capabilities, hostname = @hostname,
    pid = @pid, version = @version, platform = @platform, max_concurrent = @max_concurrent, queue_limit = @queue_limit,
    type_limits = @type_limits, last_heartbeat_at = @now, deregistered_at = null
where worker_id = @worker_id
