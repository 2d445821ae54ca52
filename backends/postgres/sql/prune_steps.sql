-- Deletes the steps of runs. No row changed: they had none.
delete from steps where run_id = any(@run_ids)
