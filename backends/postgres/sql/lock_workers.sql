-- Locks workers, so that they get no leases and do not change. No row: none exists.
select worker_id from workers where worker_id = any(@worker_ids::text[]) order by worker_id for update
