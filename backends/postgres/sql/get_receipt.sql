-- How the token's lease was ended. No row: otherwise.
select verb, content, retry_at from receipts where token = @token and run_id = @run_id
