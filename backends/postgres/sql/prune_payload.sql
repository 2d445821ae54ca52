-- Of runs that are deleted. No row changed: they had none.
delete from payloads where run_id = any(@run_ids)
