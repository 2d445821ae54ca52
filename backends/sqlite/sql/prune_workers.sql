-- Deletes workers that have been OFFLINE for long and have no leases. No row changed: none.
delete from workers
where worker_id in (
    select w.worker_id
    from workers w
    where w.status = 3 and w.deregistered_at < @before and not exists (select 1 from leases l where l.worker_id = w.worker_id)
    order by w.deregistered_at, w.worker_id
    limit @limit)
