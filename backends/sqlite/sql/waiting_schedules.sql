-- The schedules of a namespace with a tick that waits. No row: there are none.
select schedule_id
from schedules
where namespace = @namespace and buffered is not null
order by schedule_id
