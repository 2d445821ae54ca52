-- Deletes the receipts of a run. No row changed: it had none.
delete from receipts where run_id = @run_id
