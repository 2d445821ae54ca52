-- Deletes the tags of runs. No row changed: they had none.
delete from run_tags where run_id = any(@run_ids)
