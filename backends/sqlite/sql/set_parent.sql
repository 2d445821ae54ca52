-- Another parent of a run, and the step of it that the run is the result of; null when of none. Always one row.
update runs set parent_run_id = @parent_run_id, parent_step_id = @parent_step_id where run_id = @run_id
