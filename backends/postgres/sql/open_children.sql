-- The open children that their parent's end concerns. No row: there are none.
select run_id from runs where parent_run_id = @run_id and status + 0 <= 3 and parent_close > 1 order by run_id
