-- The schedules of a namespace with a buffered tick. No row: none.
select schedule_id from schedules where namespace = @namespace and buffered is not null order by schedule_id
