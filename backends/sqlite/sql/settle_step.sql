-- Gives a step's result its place in the order of results. Always one row.
update steps set settled = @settled where step_id = @step_id
