-- What a worker held when it was lost, and when that was. No row: there is no such worker.
select deregistered_at, last_heartbeat_at, lost_runs, lost_suspects from workers where worker_id = @worker_id
