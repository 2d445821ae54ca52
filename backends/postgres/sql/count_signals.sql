-- How many signals wait, and the last one's place. Always one row.
select
    (select count(*) from signals where run_id = @run_id and step_name = ''),
    coalesce((select max(sequence) from signals where run_id = @run_id), 0)
