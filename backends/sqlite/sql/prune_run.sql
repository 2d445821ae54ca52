-- Last, after all that refers to it. Always one row.
delete from runs where run_id = @run_id
