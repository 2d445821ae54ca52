-- Gives a run that is being claimed for the first time a place of its concurrency key, until its end. Always one row.
update runs set has_place = 1 where run_id = @run_id
