-- A step is to be tried again while the run stays RUNNING. Always one row.
update runs set attempts = @attempts where run_id = @run_id
