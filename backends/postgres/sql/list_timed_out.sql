-- Attempts that Kagzi fails by itself, soonest first, not locked. No row: none has a timeout.
select step_id, run_id, timeout_at
from steps
where status = 2 and timeout_at is not null
order by timeout_at, step_id
limit @limit
