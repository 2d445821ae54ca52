-- Workers that are long gone and hold nothing. Always one row: how many are gone.
with old as materialized ( -- looked for once: again for each row, as a plan may have it, it finds others in place of those that are gone
    select w.worker_id
    from workers w
    where w.status = 3 and w.deregistered_at < @before and not exists (select from leases l where l.worker_id = w.worker_id)
    order by w.deregistered_at, w.worker_id
    limit @limit
    for update skip locked
),
gone as (delete from workers where worker_id in (select worker_id from old) returning worker_id)
select count(*) from gone
