-- Locks runs, the newest first, before anything else of them. No row: there is none of them.
select run_id from runs where run_id = any(@run_ids) order by run_id desc for no key update
