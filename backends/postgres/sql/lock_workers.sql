-- Locks workers, so that they get no leases and stay what they are. No row: there is none of them.
select worker_id from workers where worker_id = any(@worker_ids::text[]) order by worker_id for update
