-- A lease under which something is reported; the writer remembers it. No row: nobody holds the run.
select token, namespace, task_queue, workflow_type, worker_id, steps, bytes, tied, progressed, suspect
from leases
where run_id = @run_id
