-- Running attempts with a timeout, earliest first, without locks. No row: none.
select step_id, run_id, timeout_at
from steps
where status = 2 and timeout_at is not null
order by timeout_at, step_id
limit @limit
