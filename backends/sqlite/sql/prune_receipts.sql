-- Of a run that is deleted. No row changed: it had none.
delete from receipts where run_id = @run_id
