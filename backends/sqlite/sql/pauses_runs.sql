-- Whether a worker knows how to pause a run. No row: there is no such worker.
select pauses_runs from workers where worker_id = @worker_id
