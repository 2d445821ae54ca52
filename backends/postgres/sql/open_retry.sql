-- The open run that a run was tried again as. No row: there is none.
select run_id from runs where retried_from = @run_id and status + 0 <= 3 order by run_id limit 1
