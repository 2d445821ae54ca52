-- The concurrency key of a run. Always one row.
select concurrency_key, concurrency_limit, concurrency_scope from runs where run_id = @run_id
