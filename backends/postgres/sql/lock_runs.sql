-- Locks runs, the newest first, before any of their other rows. No row: none exists.
select run_id from runs where run_id = any(@run_ids) order by run_id desc for no key update
