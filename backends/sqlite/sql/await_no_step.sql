-- Code that runs awaits nothing. No row changed: it did not.
update steps set awaited = 0 where run_id = @run_id and awaited <> 0
