-- Whether the run has an attempt of a step. No row: it has none.
select 1 from steps where run_id = @run_id and name = @name limit 1
