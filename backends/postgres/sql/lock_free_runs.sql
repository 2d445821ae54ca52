-- Locks runs that no other transaction has locked; it never waits, because their holder may wait for locks of this
-- transaction. No row: all are locked.
select run_id from runs where run_id = any(@run_ids) for no key update skip locked
