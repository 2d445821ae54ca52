-- Deletes the payloads of runs. No row changed: they had none.
delete from payloads where run_id = any(@run_ids)
