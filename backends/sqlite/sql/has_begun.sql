-- Whether the run has begun a step, by whatever attempt. No row: it has not.
select 1 from steps where run_id = @run_id and name = @name limit 1
