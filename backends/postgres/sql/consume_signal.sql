-- Marks a signal as consumed by a step. Always one row.
update signals set step_name = @step_name where run_id = @run_id and sequence = @sequence
