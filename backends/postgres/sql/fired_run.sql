-- The run of a recorded tick. No row: it is not recorded.
select run_id from fires where schedule_id = @schedule_id and tick = @tick
