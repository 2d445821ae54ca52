-- Another parent of a run, which has no step that started it. Always one row.
update runs set parent_run_id = @parent_run_id, parent_step_id = null where run_id = @run_id
