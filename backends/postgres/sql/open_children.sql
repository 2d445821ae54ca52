-- The open children that their parent's end concerns. No row: there are none. They are sorted once they are found: where one parent has nearly all
-- runs as children, to read everybody in the order of ids and leave out the others looks as cheap as to look for those of a run that has none.
with open as materialized (select run_id from runs where parent_run_id = @run_id and status + 0 <= 3 and parent_close > 1)
select run_id from open order by run_id
