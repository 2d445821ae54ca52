-- Locks live workers without holding up claims. No row for a worker that is unknown or OFFLINE, or locked by another
-- transaction. It never waits, so the order does not matter.
select worker_id, status from workers where worker_id = any(@worker_ids::text[]) and status + 0 <> 3 for no key update skip locked
