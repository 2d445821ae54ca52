-- Open children that end with their parent. No row: none. They are sorted after they were found: if one parent has
-- nearly all runs as children, scanning all runs by id looks as cheap as an index lookup for a run that has none.
with open as materialized (select run_id from runs where parent_run_id = @run_id and status + 0 <= 3 and parent_close > 1)
select run_id from open order by run_id
