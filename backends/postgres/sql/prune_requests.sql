-- Deletes the recorded requests of runs. No row changed: they had none.
delete from requests where run_id = any(@run_ids)
