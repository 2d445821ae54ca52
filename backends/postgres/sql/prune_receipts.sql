-- Deletes the receipts of runs. No row changed: they had none.
delete from receipts where run_id = any(@run_ids)
