-- The length of the whole list. Always one row.
select count(*) from signals where run_id = @run_id
