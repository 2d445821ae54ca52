-- Last, after its fired ticks. Always one row.
delete from schedules where schedule_id = @schedule_id
