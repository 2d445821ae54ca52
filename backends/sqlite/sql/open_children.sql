-- Open children that end with their parent. No row: none.
select run_id
from runs
where parent_run_id = @run_id and status <= 3 and parent_close > 1
order by run_id
