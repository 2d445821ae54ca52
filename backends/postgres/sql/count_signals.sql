-- How many signals of a run wait, and the highest sequence given to one. Always one row.
select
    (select count(*) from signals where run_id = @run_id and step_name = ''),
    coalesce((select max(sequence) from signals where run_id = @run_id), 0)
