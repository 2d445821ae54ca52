-- Schedules of a namespace that is being emptied, by id. No row: none.
select schedule_id from schedules where namespace = @namespace order by schedule_id limit @limit
