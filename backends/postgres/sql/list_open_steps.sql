-- What a run may wait for. No row: nothing, it is due.
select name, kind, status, retry_at, wake_at
from steps
where run_id = @run_id and status in (1, 2) and (status = 1 or kind = 2 and wake_at is not null)
order by sequence
