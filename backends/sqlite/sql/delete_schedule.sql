-- Runs after delete_fires. Always one row.
delete from schedules where schedule_id = @schedule_id
