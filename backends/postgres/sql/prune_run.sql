-- Last, after all that refers to them.
delete from runs where run_id = any(@run_ids)
