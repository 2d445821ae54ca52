-- Runs after everything that refers to the run was deleted. Always one row.
delete from runs where run_id = @run_id
