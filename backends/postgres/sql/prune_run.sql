-- Runs after everything that refers to the runs was deleted.
delete from runs where run_id = any(@run_ids)
