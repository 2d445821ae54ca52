-- Locks workers that live, without holding claims up. No row for one that is unknown or OFFLINE, or that somebody else is changing: nobody is
-- waited for, so that the order does not matter.
select worker_id, status from workers where worker_id = any(@worker_ids::text[]) and status + 0 <> 3 for no key update skip locked
