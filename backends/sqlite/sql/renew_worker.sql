-- Updates a worker whose process registers again. Always one row.
update workers
set status = @status, reason = 0, queues = @queues, types = @types, labels = @labels, capabilities = @capabilities, hostname = @hostname,
    pid = @pid, version = @version, platform = @platform, max_concurrent = @max_concurrent, queue_limit = @queue_limit,
    type_limits = @type_limits, pauses_runs = @pauses_runs, build_id = @build_id, deregistered_at = null,
    last_heartbeat_at = case when @now < last_heartbeat_at then last_heartbeat_at + 1 else @now end -- as in heartbeat
where worker_id = @worker_id
