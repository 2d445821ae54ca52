-- The concurrency key of a run. Always one row.
select concurrency_key, concurrency_limit from runs where run_id = @run_id
