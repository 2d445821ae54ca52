-- The code is running, so it awaits no step. No row changed: it awaited none.
update steps set awaited = 0 where run_id = @run_id and awaited <> 0
