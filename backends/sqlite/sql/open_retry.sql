-- The open run that this one is tried again as. No row: none.
select run_id from runs where retried_from = @run_id and status <= 3 order by run_id limit 1
