-- Workers that are long gone and hold nothing. No row changed: there are none.
delete from workers
where status = 3 and deregistered_at < @before and not exists (select 1 from leases l where l.worker_id = workers.worker_id)
