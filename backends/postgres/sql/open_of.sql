-- How many runs of a schedule are open, not counting one. Always one row.
select count(*) from runs where schedule_id = @schedule_id and schedule_id <> '' and finished_at is null and run_id <> @but
