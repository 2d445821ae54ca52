-- How the lease of a token ended. No row: without a receipt.
select verb, content, retry_at from receipts where token = @token and run_id = @run_id
