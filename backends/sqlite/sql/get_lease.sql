-- The lease of a run, for the writer's cache. No row: nobody holds the run.
select token, namespace, task_queue, workflow_type, worker_id, steps, bytes, tied, progressed, suspect, pausing, settled, owed_from
from leases
where run_id = @run_id
