-- Whether the run is in the namespace. No row: it is not.
select 1 from runs where run_id = @run_id and namespace = @namespace
