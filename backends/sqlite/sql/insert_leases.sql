-- The leases of runs that were just claimed, each given by the hexadecimal digits of its id and its token. As many rows
-- as are given.
insert into leases (
    run_id, token, worker_id, namespace, task_queue, workflow_type, claimed_at, heartbeat_us, steps, bytes, tied, concurrency_key, suspect, pausing,
    settled, owed_from
)
select
    r.run_id, unhex(substr(given.value, 33)), r.worker_id, r.namespace, r.task_queue, r.workflow_type, @now, r.heartbeat_us, r.steps, r.bytes,
    r.tied, iif(r.concurrency_scope = 0, r.concurrency_key, ''), r.suspect <> '' or r.diverged <> '', r.pausing, r.settled, r.owed_from
from json_each(@leases) given
cross join runs r on r.run_id = unhex(substr(given.value, 1, 32))
