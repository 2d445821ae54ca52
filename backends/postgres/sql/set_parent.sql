-- Sets the parent of a run, and the parent's step that gets its result; null: none. Always one row.
update runs set parent_run_id = @parent_run_id, parent_step_id = @parent_step_id where run_id = @run_id
