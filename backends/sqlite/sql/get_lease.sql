-- A lease whose steps are about to be reported; the writer remembers it. No row: nobody holds the run.
select token, namespace, worker_id, steps, bytes from leases where run_id = @run_id
