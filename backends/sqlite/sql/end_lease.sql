-- The lease of a run that completes. No row: the token is not the current one, the output is too large, or the end concerns others; look closer.
delete from leases
where run_id = @run_id and token = @token and tied = 0 and (@namespace = '' or namespace = @namespace) and bytes + @size <= @max_bytes
returning namespace, task_queue, steps, bytes, progressed
