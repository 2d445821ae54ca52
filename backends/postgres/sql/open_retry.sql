-- The open run that a run was tried again as. No row: there is none. They are sorted once they are found, as open children are.
with open as materialized (select run_id from runs where retried_from = @run_id and status + 0 <= 3)
select run_id from open order by run_id limit 1
