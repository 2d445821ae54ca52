-- A failure that will be tried again, while the lease goes on. Always one row.
update runs set attempts = @attempts where run_id = @run_id
