-- Deletes the signals of runs. No row changed: they had none.
delete from signals where run_id = any(@run_ids)
